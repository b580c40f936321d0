// Layer: parameters from and to the state dict of `torch.nn.MultiheadAttention`.
//
// PyTorch keeps a projection's weight as [out,in] (y = x Wᵀ + b); our kernels are [in,heads,size] with out = heads·size. The
// three input projections are packed into in_proj_weight [3E,E] when all widths are E, and separate otherwise; their biases
// are always packed into in_proj_bias.
import { invalidShape, invalidType, invalidValue, unsupported } from '../errors.js';
import { concatenate, type LayerConfig, type ParameterArrays } from '../request.js';
import { Tensor } from '../tensor.js';
import { readOptions } from '../validation/options.js';
import { readAnyFloats } from '../validation/shapes.js';
import { readEntries, widened, type StateTensorLike } from '../validation/state-dict.js';

/**
 * The state dict of `torch.nn.MultiheadAttention`, tensors as `{ data, shape }`, nested arrays or flat `Float32Array`s; those of
 * 16-bit floats also as `{ data: Uint16Array, type: 'float16' | 'bfloat16', shape }`.
 */
export interface TorchStateDict<T = StateTensorLike> {
  in_proj_weight?: T;
  q_proj_weight?: T;
  k_proj_weight?: T;
  v_proj_weight?: T;
  in_proj_bias?: T;
  'out_proj.weight'?: T;
  'out_proj.bias'?: T;
}

/** Options of a layer's `loadTorch`. */
export interface LoadTorchOptions {
  /**
   * Reads those tensors whose names begin with it, as by what follows it, and no others: 'encoder.layers.0.self_attn.' of a whole
   * model's state dict. Default: all.
   */
  prefix?: string | undefined;
}

const optionNames = new Set(['prefix']);

const names = new Set([
  'in_proj_weight',
  'q_proj_weight',
  'k_proj_weight',
  'v_proj_weight',
  'in_proj_bias',
  'out_proj.weight',
  'out_proj.bias',
  'bias_k',
  'bias_v',
]);
const separateNames = ['q_proj_weight', 'k_proj_weight', 'v_proj_weight'] as const;

// Width in and out of the query, key and value projections.
function projections(config: LayerConfig): { in: number; out: number }[] {
  return [
    { in: config.embedDim, out: config.heads * config.headDim },
    { in: config.keyDim, out: config.kvHeads * config.headDim },
    { in: config.valueDim, out: config.kvHeads * config.valueHeadDim },
  ];
}

function checkPossible(call: string, config: LayerConfig): void {
  if (
    config.convolution !== undefined ||
    config.merge !== 'concat' ||
    config.score !== 'scaled-dot' ||
    config.rope
  ) {
    throw unsupported(
      `${call}: torch.nn.MultiheadAttention has dense projections, concatenated heads, the scaled dot product and no rope only`,
    );
  }
  if (config.kvHeads !== config.heads) {
    throw unsupported(
      `${call}: torch.nn.MultiheadAttention has as many key/value heads as query heads`,
    );
  }
}

function readNamed(value: unknown, prefix: unknown): Record<string, unknown> {
  const entries = readEntries('stateDict', value, prefix);
  for (const [name] of entries) {
    if (names.has(name)) continue;
    const tail = [...names].find((known) => name.endsWith(`.${known}`));
    const cure =
      tail === undefined
        ? `known are ${[...names].join(', ')}`
        : `{ prefix: ${JSON.stringify(name.slice(0, -tail.length))} } reads those that begin so`;
    throw invalidValue(`stateDict: unknown name ${JSON.stringify(name)}; ${cure}`);
  }
  return Object.fromEntries(entries);
}

export function readTorch(
  value: unknown,
  config: LayerConfig,
  options: LoadTorchOptions | undefined,
): ParameterArrays {
  const { prefix } = readOptions('options', options, optionNames);
  const dict = readNamed(value, prefix);
  checkPossible('loadTorch', config);
  for (const name of ['bias_k', 'bias_v']) {
    if (dict[name] !== undefined && dict[name] !== null) {
      throw unsupported(`stateDict.${name}: add_bias_kv is not supported`);
    }
  }
  const take = (name: string, shape: readonly number[]): Float32Array => {
    if (dict[name] === undefined || dict[name] === null) {
      const cure = name.endsWith('bias') ? ' (a layer with bias: false has none)' : '';
      throw invalidType(
        `stateDict.${name}: shape [${shape}] wanted, got ${dict[name] === null ? 'null' : 'nothing'}${cure}`,
      );
    }
    const array = readAnyFloats(`stateDict.${name}`, widened(`stateDict.${name}`, dict[name]));
    const flat = array.shape.length === 1 && array.data.length === shape.reduce((a, b) => a * b, 1);
    if (!flat && String(array.shape) !== String(shape)) {
      throw invalidShape(`stateDict.${name}: shape [${shape}] wanted, got [${array.shape}]`);
    }
    return array.data;
  };
  const absent = (name: string): void => {
    if (dict[name] !== undefined && dict[name] !== null) {
      throw invalidShape(`stateDict.${name}: this layer has no biases (bias: false)`);
    }
  };

  const inputs = projections(config);
  const parameters: ParameterArrays = [];
  const rows = inputs.reduce((sum, { out }) => sum + out, 0);
  if (dict.in_proj_weight !== undefined && dict.in_proj_weight !== null) {
    if (inputs.some((input) => input.in !== config.embedDim)) {
      throw invalidShape(
        'stateDict.in_proj_weight: q_proj_weight, k_proj_weight and v_proj_weight wanted, for widths differ',
      );
    }
    const packed = take('in_proj_weight', [rows, config.embedDim]);
    let from = 0;
    inputs.forEach((input, i) => {
      const to = from + input.out * input.in;
      parameters[2 * i] = transpose(packed.subarray(from, to), input.out, input.in);
      from = to;
    });
  } else {
    inputs.forEach((input, i) => {
      const weight = take(separateNames[i] as string, [input.out, input.in]);
      parameters[2 * i] = transpose(weight, input.out, input.in);
    });
  }
  const merged = config.heads * config.valueHeadDim;
  parameters[6] = transpose(
    take('out_proj.weight', [config.outputDim, merged]),
    config.outputDim,
    merged,
  );
  if (config.bias) {
    const packed = take('in_proj_bias', [rows]);
    let from = 0;
    inputs.forEach((input, i) => {
      parameters[2 * i + 1] = packed.slice(from, from + input.out);
      from += input.out;
    });
    parameters[7] = take('out_proj.bias', [config.outputDim]);
  } else {
    absent('in_proj_bias');
    absent('out_proj.bias');
  }
  return parameters;
}

/** Packed when all widths are equal, as PyTorch does it; else separate. */
export function toTorch(parameters: ParameterArrays, config: LayerConfig): TorchStateDict<Tensor> {
  checkPossible('toTorch', config);
  const inputs = projections(config);
  const weights = inputs.map((input, i) =>
    transpose(parameters[2 * i] as Float32Array, input.in, input.out),
  );
  const dict: TorchStateDict<Tensor> = {};
  const width = config.embedDim;
  if (inputs.every((input) => input.in === width && input.out === width)) {
    dict.in_proj_weight = new Tensor(concatenate(weights), [3 * width, width]);
  } else {
    inputs.forEach((input, i) => {
      dict[separateNames[i] as (typeof separateNames)[number]] = new Tensor(
        weights[i] as Float32Array,
        [input.out, input.in],
      );
    });
  }
  const merged = config.heads * config.valueHeadDim;
  const out = transpose(parameters[6] as Float32Array, merged, config.outputDim);
  dict['out_proj.weight'] = new Tensor(out, [config.outputDim, merged]);
  if (config.bias) {
    const biases = concatenate([1, 3, 5].map((kind) => parameters[kind] as Float32Array));
    dict.in_proj_bias = new Tensor(biases, [biases.length]);
    dict['out_proj.bias'] = new Tensor(parameters[7] as Float32Array, [config.outputDim]);
  }
  return dict;
}

function transpose(source: Float32Array, rows: number, columns: number): Float32Array {
  const target = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) target[c * rows + r] = source[r * columns + c] as number;
  }
  return target;
}
