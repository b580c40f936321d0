// Bench: the page of one contender. Answers what hosts/page.mjs calls, in plain data.
import { makeStation } from '../measure.mjs';

// Written out one by one: those that run in Node alone must not be looked at by the bundler.
const modules = {
  'headwise.mjs': () => import('../contenders/headwise.mjs'),
  'ceiling.mjs': () => import('../contenders/ceiling.mjs'),
  'onnxruntime-web.mjs': () => import('../contenders/onnxruntime-web.mjs'),
  'onnxruntime-gqa.mjs': () => import('../contenders/onnxruntime-gqa.mjs'),
  'tensorflow.mjs': () => import('../contenders/tensorflow.mjs'),
  'tensorflow-training.mjs': () => import('../contenders/tensorflow-training.mjs'),
  'jax-js.mjs': () => import('../contenders/jax-js.mjs'),
  'plain-js.mjs': () => import('../contenders/plain-js.mjs'),
};

const station = makeStation((module) => modules[module](), true);

function encode(array) {
  if (array === null) return null;
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  const step = 3 * 8192; // a multiple of 3, so that the pieces' codes can be joined
  let text = '';
  for (let i = 0; i < bytes.length; i += step)
    text += btoa(String.fromCharCode(...bytes.subarray(i, i + step)));
  return text;
}

station.readEncoded = async () => encode(await station.read());

globalThis.callStation = async (method, args) => {
  try {
    return { result: await station[method](args) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { error: { name: error?.name, message: message || 'it failed without a message' } };
  }
};
