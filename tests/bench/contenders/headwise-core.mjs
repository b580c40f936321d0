// Bench: the package's WebAssembly module alone, inputs already in its heap: what the kernels and drivers do, without
// JavaScript's checks and copies. Beside `headwise` it tells where the time of a call goes.
import { loadModule } from '../../../dist/wasm/loader.js';
import { NotApplicable } from './not-applicable.mjs';

export async function create({ threads, variant = 'auto' }) {
  const options = { threads, variant, maxMemoryBytes: 2 ** 32 };
  const { bindings, memory, info } = await loadModule(options, undefined);
  if (info.threads !== threads) {
    throw new Error(`${threads} threads wanted, ${info.threads} got: ${info.threadsReason}`);
  }
  const { size, fields } = bindings.layout().AttentionArgs;
  let blocks = [];
  let args;
  let output;
  let outputLength;

  const allocate = (bytes) => {
    const address = bindings.allocate(bytes) >>> 0;
    if (address === 0) throw new Error(`no ${bytes} bytes in the heap`);
    blocks.push(address);
    return address;
  };
  const stage = (array) => {
    const address = allocate(array.byteLength);
    new Float32Array(memory.buffer, address, array.length).set(array);
    return address;
  };

  return {
    about: info.variant,
    prepare({ kind, H, G, L, S, D, causal, window }, inputs) {
      if (kind === 'layer') throw new NotApplicable('attention only');
      outputLength = H * L * D;
      output = allocate(outputLength * 4);
      const [q, k, v] = [inputs.q, inputs.k, inputs.v].map(stage);
      const rows = (name, heads, length) => ({
        [`${name}_strides.batch`]: heads * length * D,
        [`${name}_strides.head`]: length * D,
        [`${name}_strides.row`]: D,
      });
      const values = {
        batch: 1,
        heads: H,
        kv_heads: G,
        queries: L,
        keys: S,
        head_dim: D,
        value_dim: D,
        q,
        k,
        v,
        out: output,
        ...rows('q', H, L),
        ...rows('k', G, S),
        ...rows('v', G, S),
        ...rows('out', H, L),
        scale: 1 / Math.sqrt(D),
        causal: causal ? 1 : 0,
        window_left: window ? window - 1 : -1,
        window_right: window ? 0 : -1,
      };
      args = allocate(size);
      const view = new DataView(memory.buffer, args, size);
      for (let i = 0; i < size; i += 4) view.setInt32(i, 0, true);
      for (const [name, value] of Object.entries(values)) {
        const [offset, type] = fields[name];
        if (type === 'f32') view.setFloat32(offset, value, true);
        else view.setInt32(offset, value, true);
      }
    },
    run() {
      if (bindings._attention(args) !== 0) throw new Error(`status ${bindings.statusCode()}`);
    },
    read: () => new Float32Array(memory.buffer, output, outputLength).slice(),
    release() {
      for (const block of blocks) bindings.release(block);
      blocks = [];
    },
  };
}
