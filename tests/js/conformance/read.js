// Conformance: finds other projects' cases and decodes them. They are not part of this repository: HEADWISE_CONFORMANCE
// names their folder, else it is shared/conformance beside the checkout.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const beside = fileURLToPath(new URL('../../../../shared/conformance', import.meta.url));

/** The folder, or undefined where there is none. A folder that was named and isn't there is an error. */
export function conformanceFolder() {
  const named = process.env.HEADWISE_CONFORMANCE;
  if (named) {
    if (!existsSync(named))
      throw new Error(`HEADWISE_CONFORMANCE names ${named}, which does not exist`);
    return named;
  }
  return existsSync(beside) ? beside : undefined;
}

/** IEEE 754 binary16 to a number. */
export function fromFloat16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent === 0
    ? sign * fraction * 2 ** -24
    : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** A tensor's elements as numbers, the bits of a float16 included. */
export const numbersOf = ({ data, type }) =>
  type === 'float16' && data instanceof Uint16Array
    ? Array.from(data, fromFloat16)
    : Array.from(data);

const readers = {
  float32: [4, (view, at) => view.getFloat32(at, true), Float32Array],
  float16: [2, (view, at) => view.getUint16(at, true), Uint16Array],
  int64: [8, (view, at) => view.getBigInt64(at, true), BigInt64Array],
  int32: [4, (view, at) => view.getInt32(at, true), Int32Array],
  bool: [1, (view, at) => view.getUint8(at), Uint8Array],
};

/** As onnxruntime-web has tensors: type, data, dims. */
function readTensor(folder, { dtype, shape, file }) {
  const reader = readers[dtype];
  if (!reader) throw new Error(`${file}: unknown dtype ${dtype}`);
  const [size, read, Type] = reader;
  const count = shape.reduce((a, b) => a * b, 1);
  const bytes = readFileSync(join(folder, file));
  if (bytes.length !== count * size)
    throw new Error(`${file}: ${bytes.length} bytes for ${shape} of ${dtype}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const data = Type.from({ length: count }, (_, i) => read(view, i * size));
  return { type: dtype, data, dims: shape };
}

function readCase(root, group, folder) {
  const path = join(root, group, folder);
  const found = JSON.parse(readFileSync(join(path, 'case.json'), 'utf8'));
  const bySlot = (list) => Object.fromEntries(list.map((t) => [t.slot, readTensor(path, t)]));
  return {
    ...found,
    name: `${group}/${folder}`,
    group,
    inputs: bySlot(found.inputs),
    outputs: bySlot(found.outputs),
  };
}

function shapeOf(nested) {
  return Array.isArray(nested) ? [nested.length, ...shapeOf(nested[0])] : [];
}

// Operators' cases. `transformers/` holds whole models, in another form.
const groups = ['literals', 'onnx', 'onnxruntime', 'pytorch'];

/** Every operator's case below the folder, in order of name. Those of one file (pytorch) keep their inputs as that file has them. */
export function readCases(root) {
  return groups.flatMap((group) =>
    readdirSync(join(root, group), { withFileTypes: true }).flatMap((entry) => {
      if (entry.isDirectory()) return [readCase(root, group, entry.name)];
      if (!entry.name.endsWith('.json')) return []; // the licences
      const { cases } = JSON.parse(readFileSync(join(root, group, entry.name), 'utf8'));
      return cases.map((c) => ({
        ...c,
        op: `Transformer ${c.kind}`,
        name: `${group}/${c.name}`,
        group,
        outputs: {
          0: { type: 'float32', dims: shapeOf(c.expected), data: c.expected.flat(Infinity) },
        },
      }));
    }),
  );
}
