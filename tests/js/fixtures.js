// Tests: reads tests/fixtures, which scripts/make-fixtures.py wrote. The format is told in scripts/fixtures/encode.py.

import { readFileSync } from 'node:fs';
import { tensor } from 'headwise';

function decode({ shape, float32, bool }) {
  if (bool !== undefined) return { data: Uint8Array.from(bool, Number), shape };
  const bytes = Buffer.from(float32, 'base64');
  const data = new Float32Array(bytes.length / 4);
  for (let i = 0; i < data.length; i++) data[i] = bytes.readFloatLE(4 * i);
  return tensor(data, shape);
}

const decodeAll = (tensors) =>
  Object.fromEntries(Object.entries(tensors).map(([name, value]) => [name, decode(value)]));

/** `{ about, versions, cases }` of one file; a case's tensors are decoded, masks are `{ data: Uint8Array, shape }`. */
export function readFixtures(group) {
  const text = readFileSync(new URL(`../fixtures/${group}.json`, import.meta.url), 'utf8');
  const file = JSON.parse(text);
  const cases = file.cases.map(({ inputs, weights, outputs, ...rest }) => ({
    ...rest,
    inputs: decodeAll(inputs),
    weights: Array.isArray(weights) ? weights.map(decode) : weights && decodeAll(weights),
    outputs: decodeAll(outputs),
  }));
  return { ...file, cases };
}

/** A mask with its booleans turned round: from true = hidden to true = may be attended to. */
export function inverted({ data, shape }) {
  return { data: data.map((x) => 1 - x), shape };
}

/** The same numbers under another shape. */
export function reshaped({ data, shape }, newShape) {
  const count = (s) => s.reduce((a, b) => a * b, 1);
  if (count(shape) !== count(newShape)) throw new Error(`${shape} does not reshape to ${newShape}`);
  return { data, shape: newShape };
}
