// Between callers and queues: hearing an AbortSignal, of any realm or make, for as long as a call waits.
import { aborted } from './errors.js';

/** Calls `act` once when the signal aborts, at once if it has. Returns what ends the listening. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  if (signal.aborted) {
    act();
    return () => undefined;
  }
  signal.addEventListener('abort', act, { once: true });
  return () => {
    // A look-alike need not have it.
    (signal as Partial<AbortSignal>).removeEventListener?.('abort', act);
  };
}

/** What `promise` comes to; when the signal aborts while `isWaiting`, an AbortError at once. */
export function orAborted<T>(
  promise: Promise<T>,
  op: string,
  signal: AbortSignal | undefined,
  isWaiting = (): boolean => true,
): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => {
      if (isWaiting()) reject(aborted(op, signal.reason));
    });
    promise.then(resolve, reject).finally(forget);
  });
}
