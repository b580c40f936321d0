// Bench: the package itself, as a user calls it. `sync` where the engine lives on this thread (Node), else the engine's
// default (a page: in its worker).
import { createEngine } from '../../../dist/index.js';

export async function create({ threads, variant = 'auto', inPage = false }) {
  const engine = await createEngine({ backend: 'wasm', threads, variant });
  const { info } = engine;
  if (info.threads !== threads) throw new Error(`${threads} threads wanted, ${info.threads} got: ${info.threadsReason}`);
  let call;
  let layer;
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
    call = inPage ? () => layer.forward(x, x, x) : () => layer.forwardSync(x, x, x);
  };

  const prepareAttention = ({ H, G, L, S, D, causal, window }, inputs) => {
    const q = { data: inputs.q, shape: [1, H, L, D] };
    const k = { data: inputs.k, shape: [1, G, S, D] };
    const v = { data: inputs.v, shape: [1, G, S, D] };
    const options = {};
    if (causal) options.causal = true;
    if (window) options.window = [window - 1, 0];
    call = inPage ? () => engine.attention(q, k, v, options) : () => engine.attentionSync(q, k, v, options);
  };

  return {
    about: `${info.version}, ${info.variant}`,
    prepare: (shape, inputs) => (shape.kind === 'layer' ? prepareLayer : prepareAttention)(shape, inputs),
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
