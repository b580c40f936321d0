// Wasm: gives the event loop a turn, so that timers, messages and aborts are heard between slices of work.

/** How long one slice of work runs. An abort is noticed after at most this and the task in progress. */
export const sliceMs = 40;

let lastTurn = 0;

/** True when the event loop has had no turn by our doing for a slice's time. */
export function isTurnDue(): boolean {
  return performance.now() - lastTurn > sliceMs;
}

/** Resolves in a later turn of the event loop, without a timer's minimum delay where that can be had. */
export async function nextTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => void };
    if (typeof setImmediate === 'function') {
      setImmediate(resolve);
    } else if (typeof MessageChannel === 'function') {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(0);
    } else {
      setTimeout(resolve);
    }
  });
  lastTurn = performance.now();
}
