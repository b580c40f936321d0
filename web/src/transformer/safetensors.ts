// Transformer: the safetensors format (an 8-byte little-endian length, a JSON header, the data): named float32 tensors in and
// out, and the configuration in the header's metadata.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import type { NamedArray } from '../request.js';
import { product } from '../validation/shapes.js';

// As the format's own readers: a header beyond it is damage.
const mostHeaderBytes = 100_000_000;

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

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
  let header: Record<string, unknown>;
  try {
    header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))) as Record<
      string,
      unknown
    >;
  } catch {
    throw invalidValue('checkpoint: its header is no JSON');
  }
  const tensors: NamedArray[] = [];
  for (const [name, value] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const { dtype, shape, data_offsets: offsets } = value as Partial<Entry>;
    if (dtype !== 'F32')
      throw invalidType(`checkpoint: ${name} is ${String(dtype)}; F32 is wanted`);
    if (!Array.isArray(shape) || !Array.isArray(offsets))
      throw invalidValue(`checkpoint: ${name} has no shape or no place`);
    const [begin, end] = offsets;
    const room = bytes.byteLength - 8 - length;
    if (!(begin >= 0 && end <= room && end - begin === product(shape) * 4)) {
      throw invalidShape(
        `checkpoint: ${name} [${shape}] does not fit its place ${begin}…${end} of ${room} bytes`,
      );
    }
    const data = new Float32Array(product(shape));
    for (let i = 0; i < data.length; i++)
      data[i] = view.getFloat32(8 + length + begin + 4 * i, true);
    tensors.push({ name, shape, data });
  }
  return { tensors, metadata: (header.__metadata__ ?? {}) as Record<string, string> };
}

function bytesOf(file: unknown): Uint8Array {
  if (ArrayBuffer.isView(file))
    return new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  const kind = Object.prototype.toString.call(file);
  if (kind === '[object ArrayBuffer]' || kind === '[object SharedArrayBuffer]')
    return new Uint8Array(file as ArrayBuffer);
  throw invalidType(`checkpoint: a Uint8Array or an ArrayBuffer wanted, got ${kind.slice(8, -1)}`);
}
