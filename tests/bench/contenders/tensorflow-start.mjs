// Bench: starts TensorFlow.js's wasm backend with the wanted number of threads, or says that it cannot be had.
import * as tf from '@tensorflow/tfjs';
import {
  getThreadsCount,
  setThreadsCount,
  setWasmPaths,
  version_wasm,
} from '@tensorflow/tfjs-backend-wasm';

import { NotApplicable } from './not-applicable.mjs';

/** @returns {Promise<string>} its version */
export async function startWasm(threads, wasmPaths) {
  setWasmPaths(wasmPaths);
  setThreadsCount(threads);
  await tf.setBackend('wasm');
  await tf.ready();
  if (threads > 1 && !(await tf.env().getAsync('WASM_HAS_MULTITHREAD_SUPPORT'))) {
    throw new NotApplicable('TensorFlow.js has no threads here');
  }
  // It takes the number for a wish: with two cores it starts one thread.
  if (threads > 1 && getThreadsCount() !== threads) {
    throw new NotApplicable(
      `asked for ${threads} threads, TensorFlow.js starts ${getThreadsCount()}`,
    );
  }
  return version_wasm;
}
