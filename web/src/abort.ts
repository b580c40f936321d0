// Between callers and queues: hearing an AbortSignal, of any realm or make, for as long as a call waits.

/** Calls `act` once when the signal aborts. Returns what ends the listening. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  signal.addEventListener('abort', act, { once: true });
  return () => {
    // A look-alike need not have it.
    (signal as Partial<AbortSignal>).removeEventListener?.('abort', act);
  };
}
