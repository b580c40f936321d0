// Bench: onnxruntime-web's GroupQueryAttention with a cache of fixed size. Its WebAssembly backend takes the cache from
// JavaScript's arrays and gives it back to them at every run: there is no tensor that stays in its heap, so that the operator
// never finds past and present in one place.
import { rowsOf } from '../inputs.mjs';
import { encodeModel, int } from '../onnx/model.mjs';

export async function create({ threads, inPage }) {
  const ort = inPage ? await import('onnxruntime-web/wasm') : await import('onnxruntime-web');
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';
  let session;
  let runs;
  let output;
  let read;

  const modelOf = ({ B, H, G, S, D }, rows) => {
    const past = { dims: [B, G, S, D] };
    const inputs = {
      query: { dims: [B, rows, H * D] },
      key: { dims: [B, rows, G * D] },
      value: { dims: [B, rows, G * D] },
      past_key: past,
      past_value: past,
      seqlens_k: { dims: [B], type: 'int32' },
      total_sequence_length: { dims: [1], type: 'int32' },
    };
    const outputs = { output: { dims: [B, rows, H * D] }, present_key: past, present_value: past };
    const node = {
      op: 'GroupQueryAttention',
      domain: 'com.microsoft',
      inputs: Object.keys(inputs),
      outputs: Object.keys(outputs),
      attributes: { num_heads: int(H), kv_num_heads: int(G) },
    };
    return encodeModel({ nodes: [node], inputs, outputs });
  };

  return {
    about: ort.env.versions.web ?? ort.env.versions.common,
    async prepare(shape, inputs) {
      const { B, H, G, L, S, D, kind } = shape;
      const rows = kind === 'step' ? 1 : shape.chunk;
      session = await ort.InferenceSession.create(modelOf(shape, rows), {
        executionProviders: ['wasm'],
        graphOptimizationLevel: 'all',
      });
      const float = (data, dims) => new ort.Tensor('float32', data, dims);
      const int32 = (value, count) =>
        new ort.Tensor('int32', new Int32Array(count).fill(value), [count]);
      // [B,heads,rows,D] to [B,rows,heads·D].
      const flat = (data, heads, length, first) => {
        const own = rowsOf(data, B * heads, length, D, first, rows);
        const out = new Float32Array(own.length);
        for (let at = 0; at < B * heads * rows; at++) {
          const [b, h, r] = [
            Math.floor(at / (heads * rows)),
            Math.floor(at / rows) % heads,
            at % rows,
          ];
          out.set(own.subarray(at * D, (at + 1) * D), ((b * rows + r) * heads + h) * D);
        }
        return float(out, [B, rows, heads * D]);
      };
      const feedsOf = (first, qFirst) => ({
        query: flat(inputs.q, H, L, qFirst),
        key: flat(inputs.k, G, S, first),
        value: flat(inputs.v, G, S, first),
        seqlens_k: int32(first + rows - 1, B),
        total_sequence_length: int32(first + rows, 1),
      });
      const dims = [B, G, S, D];
      const cache = (make) => [float(make(inputs.k), dims), float(make(inputs.v), dims)];
      if (kind === 'step') {
        // All but the new token's place, which the operator fills.
        const [past_key, past_value] = cache((data) => data);
        runs = [{ ...feedsOf(S - 1, 0), past_key, past_value }];
      } else {
        const [past_key, past_value] = cache((data) => new Float32Array(data.length));
        runs = [];
        for (let first = 0; first < L; first += rows) runs.push(feedsOf(first, first));
        Object.assign(runs[0], { past_key, past_value });
      }
      read = (data) => {
        const out = new Float32Array(data.length);
        for (let at = 0; at < B * rows * H; at++) {
          const [b, r, h] = [Math.floor(at / (rows * H)), Math.floor(at / H) % rows, at % H];
          out.set(data.subarray(at * D, (at + 1) * D), ((b * H + h) * rows + r) * D);
        }
        return out;
      };
    },
    async run() {
      output = undefined;
      for (const feeds of runs) {
        // A chunk's present is the next one's past.
        const past = output && { past_key: output.present_key, past_value: output.present_value };
        output = await session.run({ ...feeds, ...past });
      }
    },
    read: () => read(output.output.data),
    async release() {
      await session?.release();
      session = runs = output = undefined;
    },
  };
}
