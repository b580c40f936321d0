// Bench: who takes part. A contender is a module in this folder that exports
//
//   create({ threads, ...options }) → Promise<{
//     about: string                     version, and threads when they are not the wanted ones
//     prepare(shape, inputs) → void     may be async; makes ready for run(); throws NotApplicable
//     run() → anything                  one call, from JavaScript's arrays to JavaScript's; a promise is awaited
//     read() → Float32Array             the last run's output, [H,L,D] or for a layer [L,E]; null for a ceiling
//     release() → void                  lets go of what prepare made
//   }>
//
// and runs in a process or a page of its own, so that one's threads, heap and failures are not another's.

/**
 * @typedef {object} Contender
 * @property {string} id
 * @property {string} label
 * @property {string} module in this folder
 * @property {object} [options] for create
 * @property {boolean} threaded runs with as many threads as it is told to
 * @property {boolean} [node] false: not in Node
 * @property {boolean} browser runs in a page
 * @property {'compute' | 'read'} [ceiling] what it measures instead of attention
 * @property {string[]} [kinds] of shapes that it takes; default all but a cache's
 * @property {number} [tolerance] where its numbers are smaller than float32
 * @property {number} [cells] bytes that it reads for each byte of float32
 */

const cacheKinds = ['step', 'prefill'];
const otherKinds = ['attention', 'decode', 'tiny', 'layer'];
const allKinds = [...otherKinds, ...cacheKinds];

/** Whether a contender has anything to do with a shape. */
export function takesPart({ kinds = otherKinds }, { kind }) {
  return kinds.includes(kind);
}

// What a contender does in a page that is not its default there.
const onThePage = { offMainThread: false };

/** @type {Contender[]} */
export const contenders = [
  {
    id: 'headwise',
    label: 'headwise',
    module: 'headwise.mjs',
    threaded: true,
    browser: true,
    kinds: allKinds,
  },
  {
    id: 'headwise-f16',
    label: 'headwise, cache of float16',
    module: 'headwise.mjs',
    options: { dtype: 'f16' },
    threaded: true,
    browser: true,
    kinds: cacheKinds,
    tolerance: 2e-3,
    cells: 1 / 2,
  },
  {
    id: 'headwise-int8',
    label: 'headwise, cache of int8',
    module: 'headwise.mjs',
    options: { dtype: 'int8' },
    threaded: true,
    browser: true,
    kinds: cacheKinds,
    tolerance: 2e-2,
    cells: 1 / 4 + 1 / 128,
  },
  {
    id: 'headwise-cache',
    label: 'headwise, keys and values in its cache',
    module: 'headwise.mjs',
    options: { cached: true },
    threaded: true,
    browser: true,
    kinds: ['decode'],
  },
  {
    id: 'headwise-sync',
    label: "headwise, on the page's thread",
    module: 'headwise.mjs',
    options: onThePage,
    threaded: true,
    node: false,
    browser: true,
    kinds: allKinds,
  },
  {
    id: 'headwise-core',
    label: 'headwise, the core alone',
    module: 'headwise-core.mjs',
    threaded: true,
    browser: false,
  },
  {
    id: 'headwise-simd',
    label: 'headwise, plain SIMD',
    module: 'headwise.mjs',
    options: { variant: 'simd' },
    threaded: true,
    browser: false,
  },
  {
    id: 'fma',
    label: 'ceiling: multiply-add',
    module: 'ceiling.mjs',
    options: { what: 'compute' },
    threaded: true,
    browser: true,
    ceiling: 'compute',
    kinds: ['attention', 'layer', 'prefill'],
  },
  {
    id: 'fma-simd',
    label: 'ceiling: multiply-add, plain SIMD',
    module: 'ceiling.mjs',
    options: { what: 'compute', variant: 'simd' },
    threaded: true,
    browser: false,
    ceiling: 'compute',
    kinds: ['attention', 'layer'],
  },
  {
    id: 'read',
    label: 'ceiling: memory read',
    module: 'ceiling.mjs',
    options: { what: 'read' },
    threaded: true,
    browser: true,
    ceiling: 'read',
    kinds: ['decode', 'step'],
  },
  {
    id: 'ort-web-mha',
    label: 'onnxruntime-web, MultiHeadAttention',
    module: 'onnxruntime-web.mjs',
    options: { operator: 'MultiHeadAttention' },
    threaded: true,
    browser: true,
  },
  {
    id: 'ort-web-attention',
    label: 'onnxruntime-web, Attention',
    module: 'onnxruntime-web.mjs',
    options: { operator: 'Attention' },
    threaded: true,
    browser: true,
  },
  {
    id: 'ort-web-gqa',
    label: 'onnxruntime-web, GroupQueryAttention',
    module: 'onnxruntime-gqa.mjs',
    threaded: true,
    browser: true,
    kinds: cacheKinds,
  },
  {
    id: 'ort-node-mha',
    label: 'onnxruntime-node (native), MultiHeadAttention',
    module: 'onnxruntime-node.mjs',
    options: { operator: 'MultiHeadAttention' },
    threaded: true,
    browser: false,
  },
  {
    id: 'ort-node-attention',
    label: 'onnxruntime-node (native), Attention',
    module: 'onnxruntime-node.mjs',
    options: { operator: 'Attention' },
    threaded: true,
    browser: false,
  },
  {
    id: 'tfjs',
    label: 'TensorFlow.js, wasm',
    module: 'tensorflow.mjs',
    threaded: true,
    browser: true,
  },
  { id: 'jax-js', label: 'jax-js, wasm', module: 'jax-js.mjs', threaded: false, browser: true },
  {
    id: 'plain-js',
    label: 'plain JavaScript',
    module: 'plain-js.mjs',
    threaded: false,
    browser: true,
  },
];
