// WebGPU: before a GPU is trusted it computes what the core computes too, over combinations of options and sizes round the
// tiles. Drivers and adapters that are wrong somewhere exist; they are found here and not by the user.
import type { Backend } from '../backend/backend.js';
import {
  resultNames,
  type AttentionRequest,
  type ComputeRequest,
  type LayerConfig,
  type LayerForwardRequest,
  type LinearRequest,
  type MergeRequest,
  type Response,
  type ShortRequest,
} from '../request.js';
import { readAttention, type AttentionOptions } from '../validation/attention.js';
import { floats } from './test-numbers.js';

interface Case {
  name: string;
  /** B H G L S D Dv */
  sizes: readonly [number, number, number, number, number, number, number];
  options: AttentionOptions;
}

// Float32 sums in another order, over inputs of unit scale.
const tolerance = 1e-4;

const bytes = (length: number, seed: number): Uint8Array =>
  Uint8Array.from(floats(length, seed), (x) => (x > -0.5 ? 1 : 0));

const everything = { returnWeights: true, returnLogSumExp: true } as const;

/** Every option, every pipeline, and rows, keys and columns on both sides of a tile's edge. */
const cases: readonly Case[] = [
  { name: 'plain', sizes: [1, 2, 2, 33, 65, 17, 19], options: { ...everything } },
  {
    name: 'wide values, causal, grouped heads',
    sizes: [1, 4, 2, 18, 30, 8, 70],
    options: { causal: true, sinks: floats(4, 1), returnScores: 'masked' },
  },
  {
    name: 'masks, bias, softcap',
    sizes: [2, 2, 1, 20, 37, 5, 6],
    options: {
      ...everything,
      softcap: 2,
      mask: { data: bytes(20 * 37, 2), shape: [20, 37] },
      bias: { data: floats(2 * 37, 3), shape: [2, 1, 37] },
      keyPaddingMask: { data: bytes(2 * 37, 4), shape: [2, 37] },
    },
  },
  {
    name: 'decoding, split keys',
    sizes: [1, 2, 2, 1, 300, 33, 64],
    options: { returnLogSumExp: true, alibiSlopes: floats(2, 5), sinks: floats(2, 6) },
  },
  {
    name: 'decoding, wide values',
    sizes: [1, 3, 1, 1, 70, 4, 66],
    options: { returnWeights: true },
  },
  {
    name: 'split keys of many rows',
    sizes: [1, 1, 1, 35, 260, 4, 4],
    options: { window: [200, 3], returnLogSumExp: true },
  },
  {
    name: 'lengths, window, dropout, layout',
    sizes: [2, 2, 2, 9, 40, 12, 3],
    options: {
      ...everything,
      layout: 'blhd',
      qLengths: [9, 4],
      kvLengths: [40, 13],
      window: [6, 2],
      dropout: { rate: 0.3, seed: 12345678901 },
    },
  },
];

/** NaN in hidden keys; rows without a key. */
function hiddenCase(): AttentionRequest {
  const { request } = readAttention(
    { data: floats(2 * 8, 7), shape: [2, 8] },
    { data: floats(70 * 8, 8), shape: [70, 8] },
    { data: floats(70 * 8, 9), shape: [70, 8] },
    {
      mask: {
        data: Uint8Array.from({ length: 140 }, (_, i) => (i < 70 && i % 3 === 0 ? 1 : 0)),
        shape: [2, 70],
      },
      returnLogSumExp: true,
    },
  );
  for (let j = 1; j < 70; j += 3) {
    request.k[j * 8] = NaN;
    request.v[j * 8 + 1] = NaN;
    request.v[(j + 1 < 70 ? j + 1 : j) * 8 + 2] = Infinity;
  }
  return request;
}

function requestOf({ sizes, options }: Case): AttentionRequest {
  const [B, H, G, L, S, D, Dv] = sizes;
  const shape = (heads: number, rows: number, size: number): number[] =>
    options.layout === 'blhd' ? [B, rows, heads, size] : [B, heads, rows, size];
  const tensor = (heads: number, rows: number, size: number, seed: number) => ({
    data: floats(B * heads * rows * size, seed),
    shape: shape(heads, rows, size),
  });
  return readAttention(tensor(H, L, D, 10), tensor(G, S, D, 11), tensor(G, S, Dv, 12), options)
    .request;
}

/** What is wrong with the GPU, in words, or undefined. */
export async function selfTest(gpu: Backend, core: Backend): Promise<string | undefined> {
  const all: { name: string; request: ComputeRequest }[] = [
    ...cases.map((test) => ({ name: test.name, request: requestOf(test) })),
    { name: 'hidden NaN', request: hiddenCase() },
    { name: 'linear', request: linearCase() },
    { name: 'merge', request: mergeCase() },
  ];
  for (const { name, request } of all) {
    const fault = await faultOf(name, request, gpu, core);
    if (fault !== undefined) return fault;
  }
  return layerFault(gpu, core);
}

async function faultOf(
  name: string,
  request: ComputeRequest,
  gpu: Backend,
  core: Backend,
): Promise<string | undefined> {
  const [got, wanted] = await Promise.all([gpu.run(request), core.run(request)]);
  const fault = difference(got, wanted);
  return fault === undefined ? undefined : `the self-test '${name}' came out wrong: ${fault}`;
}

// Numbers of layers that callers have begin at 1.
const ownLayer = -1;

/** Everything that surrounds a layer's products, in one layer. */
async function layerFault(gpu: Backend, core: Backend): Promise<string | undefined> {
  const [batch, queries, keys, embedDim] = [2, 7, 19, 6];
  const config: LayerConfig = {
    ...{ embedDim, keyDim: embedDim, valueDim: embedDim, outputDim: 9 },
    ...{ heads: 4, kvHeads: 2, headDim: 8, valueHeadDim: 5, bias: true },
    ...{ merge: 'sum', score: 'cosine', seed: [1, 2] },
    convolution: { kernelSize: 3, causal: false },
    rope: { base: 100, dim: 6, interleaved: true },
  };
  const request: LayerForwardRequest = {
    op: 'layerForward',
    ...{ layer: ownLayer, outputDim: config.outputDim, averageWeights: true },
    ...{ batch, heads: config.heads, queries, keys, softcap: 0, causal: true },
    ...{ window: [-1, -1], scoreStage: 0, logSumExp: true },
    query: floats(batch * queries * embedDim, 19),
    key: floats(batch * keys * embedDim, 20),
    value: floats(batch * keys * embedDim, 21),
  };
  const both = (request: ShortRequest) => Promise.all([core.run(request), gpu.run(request)]);
  await both({ op: 'createLayer', layer: ownLayer, config });
  try {
    return await faultOf('layer', request, gpu, core);
  } finally {
    await both({ op: 'destroy', number: ownLayer });
  }
}

function linearCase(): LinearRequest {
  const [rows, width, out] = [35, 21, 70];
  return {
    op: 'linear',
    ...{ rows, in: width, out },
    x: floats(rows * width, 13),
    kernel: floats(width * out, 15),
    bias: floats(out, 14),
  };
}

/** Rows that some parts, or all, saw no key of. */
function mergeCase(): MergeRequest {
  const [heads, rows, size] = [3, 5, 67];
  const sums = (seed: number): Float32Array =>
    floats(heads * rows, seed).map((x, i) => (i === 7 || (i + seed) % 4 === 0 ? -Infinity : x));
  return {
    op: 'mergeAttention',
    ...{ parts: 3, batch: 1, heads, rows, size },
    outputs: [16, 17, 18].map((seed) => floats(heads * rows * size, seed)),
    logSumExps: [16, 17, 18].map(sums),
    strides: [heads * rows * size, size, heads * size],
  };
}

function difference(got: Response, wanted: Response): string | undefined {
  for (const name of resultNames) {
    const [a, b] = [got[name], wanted[name]];
    if (a?.length !== b?.length) return `${name} has ${a?.length} elements, not ${b?.length}`;
    for (let i = 0; i < (b?.length ?? 0); i++) {
      const x = (a as Float32Array)[i] as number;
      const y = (b as Float32Array)[i] as number;
      // Comparisons with NaN are false, so that a NaN fails.
      if (!(x === y || Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y))))
        return `${name}[${i}] is ${x}, not ${y}`;
    }
  }
  return undefined;
}
