// Bench: onnxruntime in either of its builds; they have one JavaScript API.
import { graphOf } from './graphs.mjs';
import { encodeModel } from './model.mjs';

/**
 * @param {object} ort onnxruntime-web's or onnxruntime-node's exports
 * @param {{ operator: string, about: string, session: object }} options session: for InferenceSession.create
 */
export function onnxContender(ort, { operator, about, session: sessionOptions }) {
  let session;
  let tensors;
  let output;
  let reader;
  return {
    about,
    async prepare(shape, inputs) {
      const { graph, feeds, read } = graphOf(shape, inputs, operator);
      session = await ort.InferenceSession.create(encodeModel(graph), sessionOptions);
      tensors = {};
      for (const [name, { dims, type = 'float' }] of Object.entries(graph.inputs)) {
        tensors[name] = new ort.Tensor(type === 'float' ? 'float32' : type, feeds[name], dims);
      }
      reader = read;
    },
    async run() {
      output = await session.run(tensors);
    },
    read: () => reader(Object.values(output)[0].data),
    async release() {
      await session?.release();
      session = tensors = output = undefined;
    },
  };
}
