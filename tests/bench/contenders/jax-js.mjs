// Bench: jax-js on its WebAssembly backend, its own dotProductAttention under jit. Arrays of jax-js are consumed by use, so
// `.ref` is what keeps one for later.
import { init, defaultDevice, jit, nn, numpy as np } from '@jax-js/jax';

import { exchangeAxes } from '../inputs.mjs';

export async function create() {
  await init('wasm');
  defaultDevice('wasm');
  let call;
  let reader;
  let last;

  const attentionOf = ({ H, G, L, S, D, causal, window }, { q, k, v }) => {
    const options = {};
    if (causal) options.isCausal = true;
    if (window) options.localWindowSize = [window - 1, 0];
    const attend = jit((query, key, value) => nn.dotProductAttention(query, key, value, options));
    // [B,L,H,D] is the only layout.
    const rows = {
      q: exchangeAxes(q, H, L, D),
      k: exchangeAxes(k, G, S, D),
      v: exchangeAxes(v, G, S, D),
    };
    call = () =>
      attend(
        np.array(rows.q, { shape: [1, L, H, D] }),
        np.array(rows.k, { shape: [1, S, G, D] }),
        np.array(rows.v, { shape: [1, S, G, D] }),
      );
    reader = (data) => exchangeAxes(data, L, H, D);
  };

  const layerOf = ({ H, L, D, E }, inputs) => {
    const kernels = ['query', 'key', 'value', 'output'].map((name) =>
      np.array(inputs[name], { shape: [E, E] }),
    );
    const forward = jit((x, query, key, value, output) => {
      const heads = (y) => y.reshape([1, L, H, D]);
      const q = heads(np.matmul(x.ref, query));
      const k = heads(np.matmul(x.ref, key));
      const v = heads(np.matmul(x, value));
      return np.matmul(nn.dotProductAttention(q, k, v).reshape([L, E]), output);
    });
    call = () =>
      forward(np.array(inputs.x, { shape: [L, E] }), ...kernels.map((kernel) => kernel.ref));
    reader = (data) => data;
  };

  return {
    about: '',
    prepare: (shape, inputs) => (shape.kind === 'layer' ? layerOf : attentionOf)(shape, inputs),
    async run() {
      last = await call().data();
    },
    read: () => reader(last),
    release() {
      call = reader = last = undefined;
    },
  };
}
