// WebGPU: the drivers of what surrounds a layer's products: taps, rotary positions, vectors of length 1, sums over heads. Each
// reads one slice and makes another.
import type { Slice } from './buffers.js';
import type { Call } from './call.js';
import type { Pipeline } from './pipelines.js';
import { planDispatches, type DeviceLimits } from './plan.js';
import { pointwiseModes, pointwiseThreads } from './shaders/pointwise.js';

const paramsBytes = 256;

interface Numbers {
  mode: number;
  rows?: number;
  count?: number;
  size: number;
  width?: number;
  offset?: number;
  tableBatch?: number;
  factor?: number;
}

/** A vector at every row and head: [batch, rows, heads, size]. */
export interface Vectors {
  batch: number;
  rows: number;
  heads: number;
  size: number;
}

export class Pointwise {
  readonly #call: Call;
  readonly #pipeline: Pipeline;
  readonly #limits: DeviceLimits;

  constructor(call: Call, pipeline: Pipeline, limits: DeviceLimits) {
    this.#call = call;
    this.#pipeline = pipeline;
    this.#limits = limits;
  }

  /** For a convolution: [batch, rows, size] → [batch, rows, taps · size], from `left` rows before each. */
  taps(
    x: Slice,
    { batch, rows, size }: { batch: number; rows: number; size: number },
    taps: number,
    left: number,
  ): Slice {
    const numbers = { mode: pointwiseModes.taps, rows, count: taps, size, offset: left };
    const elements = batch * rows * taps * size;
    return this.#run(x, undefined, numbers, elements, elements, 1);
  }

  /** Rotary positions: `offsets` [B] is where each batch's row 0 stands, by default at 0. */
  rotate(
    x: Slice,
    { batch, rows, heads, size }: Vectors,
    rope: { base: number; dim: number; interleaved: boolean },
    offsets: Int32Array | undefined,
  ): Slice {
    const half = rope.dim / 2;
    const tables = offsets === undefined ? 1 : batch;
    const table = new Float32Array(tables * rows * rope.dim);
    // In doubles, as in the core.
    const base = Math.fround(rope.base);
    const rates = Array.from({ length: half }, (_, i) => base ** ((-2 * i) / rope.dim));
    for (let n = 0; n < tables * rows; n++) {
      const position = (offsets?.[Math.floor(n / rows)] ?? 0) + (n % rows);
      rates.forEach((rate, i) => {
        table[(n * half + i) * 2] = Math.cos(position * rate);
        table[(n * half + i) * 2 + 1] = Math.sin(position * rate);
      });
    }
    const { rotateHalves, rotatePairs } = pointwiseModes;
    const numbers = {
      mode: rope.interleaved ? rotatePairs : rotateHalves,
      ...{ rows, count: heads, size, width: rope.dim },
      tableBatch: offsets === undefined ? 0 : rows * half,
    };
    const elements = batch * rows * heads * size;
    return this.#run(x, this.#call.upload(table), numbers, elements, elements, 4);
  }

  /** Vectors of length 1. */
  normalize(x: Slice, { batch, rows, heads, size }: Vectors): Slice {
    const vectors = batch * rows * heads;
    const numbers = { mode: pointwiseModes.normalize, size };
    return this.#run(x, undefined, numbers, vectors, vectors * size, size * 3);
  }

  /** [outer, count, size] → [outer, size], each sum times `factor`. */
  sum(x: Slice, outer: number, count: number, size: number, factor: number): Slice {
    const numbers = { mode: pointwiseModes.sum, count, size, factor };
    return this.#run(x, undefined, numbers, outer * size, outer * size, count);
  }

  #run(
    x: Slice,
    table: Slice | undefined,
    numbers: Numbers,
    invocations: number,
    elements: number,
    work: number,
  ): Slice {
    const call = this.#call;
    const y = call.take('storage', elements * 4);
    const workgroups = Math.ceil(invocations / pointwiseThreads);
    const dispatches = planDispatches(0, workgroups, pointwiseThreads * work, this.#limits);
    const words = new Uint32Array((dispatches.length * paramsBytes) / 4);
    const floats = new Float32Array(words.buffer);
    const { mode, rows = 1, count = 1, size, width = 0, offset = 0, tableBatch = 0 } = numbers;
    dispatches.forEach(({ first, end, x: gridX }, i) => {
      const at = (i * paramsBytes) / 4;
      words.set([mode, rows, count, size, width, offset, tableBatch, 0], at);
      words.set([invocations, first, end, gridX], at + 8);
      floats[at + 7] = numbers.factor ?? 1;
    });
    const { buffer } = call.upload(words, 'uniform');
    const slices = { 1: x, 2: table ?? call.take('storage', 0), 6: y };
    dispatches.forEach((dispatch, i) => {
      const uniform = { buffer, offset: i * paramsBytes, size: paramsBytes };
      call.step(this.#pipeline, slices, uniform, dispatch);
    });
    return y;
  }
}
