// WebGPU: waits for the device, and keeps it talking. Firefox looks for finished work when something is submitted, and else only
// every 100 ms (its bug 1870699): empty submissions, which cost next to nothing anywhere, make it look. No browser is asked for
// its name.
import { nextTurn } from '../wasm/event-loop.js';

// Turns of the event loop first, since most work is done by then; then timers, so that long work does not keep a core busy.
const turns = 3;
const pausesMs = [1, 2, 4];

/** `promise`, of mapAsync or onSubmittedWorkDone. */
export async function nudged<T>(
  promise: Promise<T>,
  device: Pick<GPUDevice, 'queue'>,
  pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
): Promise<T> {
  let pending = true;
  const settled = promise.then(
    () => (pending = false),
    () => (pending = false),
  );
  for (let n = 0; ; n++) {
    if (n < turns) await nextTurn();
    else {
      const ms = pausesMs[Math.min(n - turns, pausesMs.length - 1)] as number;
      await Promise.race([settled, pause(ms)]);
    }
    if (!pending) return promise;
    device.queue.submit([]);
  }
}
