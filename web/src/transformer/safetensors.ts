// Transformer: the safetensors format (an 8-byte little-endian length, a JSON header, the data): named tensors in and out, and the
// configuration in the header's metadata. No library of the npm registry reads it with the checks of the format's own.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { NamedArray } from '../request.js';
import { describe, kindOf } from '../validation/arrays.js';
import { product } from '../validation/shapes.js';
import { fromBfloat16, fromFloat16 } from '../half-floats.js';

// A header beyond it is damage, as the format's own library says.
const mostHeaderBytes = 100_000_000;

export function writeSafetensors(
  tensors: readonly NamedArray[],
  metadata: Record<string, string>,
): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const { name, shape, data } of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  // Spaces bring the data to a multiple of eight.
  const json = JSON.stringify(header);
  const length = Math.ceil(new TextEncoder().encode(json).length / 8) * 8;
  const file = new Uint8Array(8 + length + offset);
  const view = new DataView(file.buffer);
  view.setBigUint64(0, BigInt(length), true);
  file.fill(0x20, 8, 8 + length);
  file.set(new TextEncoder().encode(json), 8);
  let at = 8 + length;
  for (const { data } of tensors) {
    // Element by element: the file is little-endian whatever the machine is.
    for (let i = 0; i < data.length; i++, at += 4) view.setFloat32(at, data[i] as number, true);
  }
  return file;
}

interface Entry {
  name: string;
  type: string;
  shape: number[];
  begin: number;
  end: number;
}

interface ElementType {
  bytes: number;
  /** Reads one as float32 would have it; undefined for what is no float. */
  read?: (view: DataView, at: number) => number;
}

const integer = (bytes: number): ElementType => ({ bytes });
const elementTypes = new Map<unknown, ElementType>([
  ['F32', { bytes: 4, read: (view, at) => view.getFloat32(at, true) }],
  ['F64', { bytes: 8, read: (view, at) => view.getFloat64(at, true) }],
  ['F16', { bytes: 2, read: (view, at) => fromFloat16(view.getUint16(at, true)) }],
  ['BF16', { bytes: 2, read: (view, at) => fromBfloat16(view.getUint16(at, true)) }],
  ...['I64', 'U64'].map((name) => [name, integer(8)] as const),
  ...['I32', 'U32'].map((name) => [name, integer(4)] as const),
  ...['I16', 'U16'].map((name) => [name, integer(2)] as const),
  ...['I8', 'U8', 'BOOL', 'F8_E4M3', 'F8_E5M2'].map((name) => [name, integer(1)] as const),
]);

/**
 * A file's tensors as float32 and its metadata. The header is checked as a whole, as the format's own library (Rust) checks it,
 * before anything is copied: places are whole, begin at 0, follow each other without gap or overlap, and end where the file does.
 */
export function readSafetensors(file: unknown): {
  tensors: NamedArray[];
  metadata: Record<string, string>;
} {
  const bytes = bytesOf(file);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.byteLength < 8 ? NaN : Number(view.getBigUint64(0, true));
  if (!(length <= Math.min(mostHeaderBytes, bytes.byteLength - 8))) {
    throw invalidValue(
      `checkpoint: no safetensors file, or one that is cut off (${bytes.byteLength} bytes)`,
    );
  }
  const header = readHeader(bytes.subarray(8, 8 + length));
  const { __metadata__: metadata, ...named } = header;
  const entries = Object.entries(named).map(([name, value]) => readEntry(name, value));
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let expected = 0;
  for (const { name, begin, end } of entries) {
    if (begin !== expected) {
      throw invalidValue(
        `checkpoint: ${name} begins at ${begin}; ${expected}, where the one before ends, is wanted`,
      );
    }
    expected = end;
  }
  const start = 8 + length;
  if (start + expected !== bytes.byteLength) {
    throw invalidValue(
      `checkpoint: ${entries.at(-1)?.name ?? 'the header'} ends at ${expected}; the file has ${bytes.byteLength - start} bytes of data`,
    );
  }
  const strings = readMetadata(metadata);
  return {
    tensors: entries.map(({ name, type, shape, begin }) => {
      const { bytes: step, read } = elementTypes.get(type) as Required<ElementType>;
      const data = new Float32Array(product(shape));
      for (let i = 0; i < data.length; i++) data[i] = read(view, start + begin + i * step);
      return { name, shape, data };
    }),
    metadata: strings,
  };
}

function readHeader(bytes: Uint8Array): Record<string, unknown> {
  let header: unknown;
  try {
    // A copy: browsers decode no shared memory.
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes)));
  } catch {
    throw invalidValue('checkpoint: its header is no JSON');
  }
  if (bytes[0] !== 0x7b || !isObject(header))
    throw invalidValue('checkpoint: its header is no JSON object');
  return header;
}

function readEntry(name: string, value: unknown): Entry {
  if (!isObject(value)) throw invalidValue(`checkpoint: ${name} is no object in the header`);
  const { dtype, shape, data_offsets: offsets } = value;
  const type = elementTypes.get(dtype);
  if (type?.read === undefined) {
    const got = typeof dtype === 'string' ? dtype.slice(0, 20) : describe(dtype);
    throw invalidType(`checkpoint: ${name} is ${got}; F32, F64, F16 or BF16 is wanted`);
  }
  if (!Array.isArray(shape) || !shape.every(isCount) || shape.length > 32)
    throw invalidValue(`checkpoint: ${name} has no shape of whole numbers`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount))
    throw invalidValue(`checkpoint: ${name} has no place of two whole numbers`);
  const [begin, end] = offsets as [number, number];
  const wanted = product(shape) * type.bytes;
  if (end - begin !== wanted) {
    throw invalidShape(
      `checkpoint: ${name} [${shape}] takes ${wanted} bytes; its place is ${begin}…${end}`,
    );
  }
  return { name, type: dtype as string, shape, begin, end };
}

function readMetadata(value: unknown): Record<string, string> {
  if (value === undefined) return {};
  if (!isObject(value) || !Object.values(value).every((text) => typeof text === 'string'))
    throw invalidValue('checkpoint: __metadata__ is no object of strings');
  return value as Record<string, string>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

function bytesOf(file: unknown): Uint8Array {
  const kind = kindOf(file);
  const isBuffer = kind === 'ArrayBuffer' || kind === 'SharedArrayBuffer';
  try {
    if (isBuffer) return new Uint8Array(file as ArrayBuffer);
    if (ArrayBuffer.isView(file))
      return new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  } catch {
    throw invalidValue('checkpoint: an array with its memory wanted, got one that is detached');
  }
  throw invalidType(`checkpoint: a Uint8Array or an ArrayBuffer wanted, got ${kind}`);
}
