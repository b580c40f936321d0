// Bench: onnxruntime-web's WebAssembly backend. It has one build for Node, whose threads find their files, and for pages one
// without WebGPU.
import { onnxContender } from '../onnx/contender.mjs';

export async function create({ threads, operator, inPage }) {
  const ort = inPage ? await import('onnxruntime-web/wasm') : await import('onnxruntime-web');
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';
  return onnxContender(ort, {
    operator,
    about: ort.env.versions.web ?? ort.env.versions.common,
    session: { executionProviders: ['wasm'], graphOptimizationLevel: 'all' },
  });
}
