// Bench: onnxruntime as native code, with this machine's widest vectors: what WebAssembly is up against.
import ort from 'onnxruntime-node';

import { onnxContender } from '../onnx/contender.mjs';

export async function create({ threads, operator }) {
  return onnxContender(ort, {
    operator,
    about: ort.env.versions.node ?? ort.env.versions.common,
    session: {
      executionProviders: ['cpu'],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      graphOptimizationLevel: 'all',
      logSeverityLevel: 3,
    },
  });
}
