// Bench: the package itself, as a user calls it: synchronously where the engine lives on this thread (Node, or a page that
// asks for it), else asynchronously (a page by default: the engine lives in a worker).
import { createEngine } from '../../../dist/index.js';
import { cacheCall } from './headwise-cache.mjs';

export async function create(options) {
  const { threads, variant = 'auto', dtype = 'f32', cached = false } = options;
  const { inPage, offMainThread = inPage } = options;
  const engine = await createEngine({ backend: 'wasm', threads, variant, offMainThread });
  const { info } = engine;
  if (info.threads !== threads)
    throw new Error(`${threads} threads wanted, ${info.threads} got: ${info.threadsReason}`);
  let call;
  let layer; // or a cache: what is to be disposed of
  let last;

  const prepareLayer = async ({ H, L, E, D }, inputs) => {
    layer = engine.multiHeadAttention({ embedDim: E, numHeads: H, bias: false });
    const heads = (data) => ({ kernel: { data, shape: [E, H, D] } });
    await layer.setWeights({
      query: heads(inputs.query),
      key: heads(inputs.key),
      value: heads(inputs.value),
      output: { kernel: { data: inputs.output, shape: [H, D, E] } },
    });
    const x = { data: inputs.x, shape: [1, L, E] };
    call = offMainThread ? () => layer.forward(x, x, x) : () => layer.forwardSync(x, x, x);
  };

  const prepareAttention = ({ H, G, L, S, D, causal, window }, inputs) => {
    const q = { data: inputs.q, shape: [1, H, L, D] };
    const k = { data: inputs.k, shape: [1, G, S, D] };
    const v = { data: inputs.v, shape: [1, G, S, D] };
    const options = {};
    if (causal) options.causal = true;
    if (window) options.window = [window - 1, 0];
    call = offMainThread
      ? () => engine.attention(q, k, v, options)
      : () => engine.attentionSync(q, k, v, options);
  };

  const prepareCache = async (shape, inputs) => {
    const cache = await cacheCall(engine, dtype, offMainThread, shape, inputs);
    layer = cache;
    call = cache.run;
  };

  const prepares = { layer: prepareLayer, step: prepareCache, prefill: prepareCache };
  // Decoding as a user decodes: the last token is appended to all others.
  if (cached) prepares.decode = (shape, inputs) => prepareCache({ ...shape, kind: 'step' }, inputs);
  return {
    about: `${info.version}, ${info.variant}`,
    prepare: (shape, inputs) => (prepares[shape.kind] ?? prepareAttention)(shape, inputs),
    run() {
      const result = call();
      if (typeof result.then === 'function') return result.then((value) => (last = value));
      last = result;
    },
    read: () => last.output.data,
    release() {
      layer?.dispose();
      layer = call = last = undefined;
    },
    memory: () => engine.memory(),
  };
}
