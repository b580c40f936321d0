// Bench: onnxruntime-web's WebAssembly backend, from its build without WebGPU.
import * as ort from 'onnxruntime-web/wasm';

import { onnxContender } from '../onnx/contender.mjs';

export async function create({ threads, operator, wasmPaths }) {
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';
  if (wasmPaths) ort.env.wasm.wasmPaths = wasmPaths;
  return onnxContender(ort, {
    operator,
    about: ort.env.versions.web ?? ort.env.versions.common,
    session: { executionProviders: ['wasm'], graphOptimizationLevel: 'all' },
  });
}
