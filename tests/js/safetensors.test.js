// Tests: safetensors files: what the format's own library refuses is refused, by a coded error, before anything is copied, and the
// model stays as it was; float types are converted.

import { createEngine } from 'headwise';

let engine;
let model;
let good;
beforeAll(async () => {
  engine = await createEngine({ backend: 'wasm', threads: 1 });
  model = engine.transformer({
    ...{ kind: 'decoder', targetVocabulary: 7, embedDim: 4, numHeads: 2 },
    ...{ decoderLayers: 1, feedForwardDim: 4, maxLength: 8, seed: 3 },
  });
  good = await model.save();
});
afterAll(() => engine.dispose());

const u32 = (n) => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(n), true);
  return bytes;
};

/** A file of a header's text and its data. */
function fileOf(text, data) {
  const json = new TextEncoder().encode(text);
  const file = new Uint8Array(8 + json.length + data.length);
  file.set(u32(json.length));
  file.set(json, 8);
  file.set(data, 8 + json.length);
  return file;
}

function partsOf(file) {
  const length = Number(new DataView(file.buffer).getBigUint64(0, true));
  return {
    header: JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length))),
    data: file.slice(8 + length),
  };
}

/** The good file with another header. */
function changed(change) {
  const { header, data } = partsOf(good);
  const made = change(header, data) ?? {};
  return fileOf(made.text ?? JSON.stringify(made.header ?? header), made.data ?? data);
}

const first = (header) => Object.keys(header).find((name) => name !== '__metadata__');
const second = (header) => Object.keys(header).filter((name) => name !== '__metadata__')[1];

const weightsOf = async () =>
  Object.entries(await model.getWeights()).map(([name, { data }]) => [name, [...data]]);

async function expectRefused(file, code, words) {
  const before = await weightsOf();
  await expect(model.load(file)).rejects.toMatchObject({
    code,
    message: expect.stringMatching(words),
  });
  expect(await weightsOf()).toEqual(before);
}

test.each([
  ['a header of null', () => ({ text: 'null' }), 'INVALID_VALUE', /no JSON object/],
  ['a header of an array', () => ({ text: '[1]' }), 'INVALID_VALUE', /no JSON object/],
  [
    'a space before the header',
    (h) => ({ text: ` ${JSON.stringify(h)}` }),
    'INVALID_VALUE',
    /JSON/,
  ],
  [
    'nesting that is too deep',
    () => ({ text: `{"a":${'['.repeat(2e5)}${']'.repeat(2e5)}}` }),
    'INVALID_VALUE',
    /./,
  ],
  ['an entry of null', (h) => void (h[first(h)] = null), 'INVALID_VALUE', /no object/],
  ['a dtype that is no string', (h) => void (h[first(h)].dtype = { a: 1 }), 'INVALID_TYPE', /F32/],
  ['integers', (h) => void (h[first(h)].dtype = 'I32'), 'INVALID_TYPE', /I32/],
  ['a shape of fractions', (h) => void (h[first(h)].shape = [0.5]), 'INVALID_VALUE', /no shape/],
  ['a shape of strings', (h) => void (h[first(h)].shape = ['28']), 'INVALID_VALUE', /no shape/],
  [
    'a shape beyond all numbers',
    (h) => void (h[first(h)].shape = [2 ** 52, 2 ** 52]),
    'INVALID_SHAPE',
    /takes/,
  ],
  [
    'fractional places',
    (h) => void (h[first(h)].data_offsets = [0.5, 112.5]),
    'INVALID_VALUE',
    /no place/,
  ],
  [
    'one place for two',
    (h) => void (h[second(h)] = { ...h[first(h)] }),
    'INVALID_VALUE',
    /begins at 0/,
  ],
  [
    'a gap',
    (h, data) => {
      for (const [name, entry] of Object.entries(h))
        if (name !== '__metadata__') entry.data_offsets = entry.data_offsets.map((at) => at + 4);
      return { header: h, data: Uint8Array.of(0, 0, 0, 0, ...data) };
    },
    'INVALID_VALUE',
    /begins at 4; 0/,
  ],
  [
    'trailing bytes',
    (h, data) => ({ data: Uint8Array.of(...data, 1) }),
    'INVALID_VALUE',
    /ends at/,
  ],
  ['missing bytes', (h, data) => ({ data: data.slice(0, -1) }), 'INVALID_VALUE', /ends at/],
  ['metadata of numbers', (h) => void (h.__metadata__.step = 3), 'INVALID_VALUE', /__metadata__/],
  ['metadata that is an array', (h) => void (h.__metadata__ = []), 'INVALID_VALUE', /__metadata__/],
])('%s', async (_, change, code, words) => {
  await expectRefused(changed(change), code, words);
});

test('100 names for one place take no memory', async () => {
  const { header, data } = partsOf(good);
  const place = header[first(header)];
  for (let i = 0; i < 100; i++) header[`more.${i}`] = place;
  await expectRefused(fileOf(JSON.stringify(header), data), 'INVALID_VALUE', /begins at 0/);
});

test.each([
  [new Uint8Array(7), 'INVALID_VALUE'],
  [Uint8Array.of(...u32(2 ** 40), 0x7b, 0x7d), 'INVALID_VALUE'],
  [null, 'INVALID_TYPE'],
  [5, 'INVALID_TYPE'],
])('no file: %s', async (file, code) => {
  await expectRefused(file, code, /checkpoint/);
});

test('a detached file', async () => {
  const file = good.slice();
  structuredClone(file.buffer, { transfer: [file.buffer] });
  await expectRefused(file, 'INVALID_VALUE', /detached/);
});

test('shared memory is read', async () => {
  const shared = new Uint8Array(new SharedArrayBuffer(good.length));
  shared.set(good);
  await model.load(shared);
});

test('every float type is converted', async () => {
  const { header } = partsOf(good);
  const name = first(header);
  const { shape } = header[name];
  const count = shape.reduce((a, b) => a * b, 1);
  // 1.5 in each type's bits.
  for (const [dtype, bits, write] of [
    ['F64', 8, (view, at) => view.setFloat64(at, 1.5, true)],
    ['F16', 2, (view, at) => view.setUint16(at, 0x3e00, true)],
    ['BF16', 2, (view, at) => view.setUint16(at, 0x3fc0, true)],
  ]) {
    const file = changed((h, data) => {
      const old = h[name].data_offsets[1];
      const place = new Uint8Array(count * bits);
      const view = new DataView(place.buffer);
      for (let i = 0; i < count; i++) write(view, i * bits);
      const shift = place.length - old;
      for (const [other, entry] of Object.entries(h))
        if (other !== '__metadata__' && other !== name)
          entry.data_offsets = entry.data_offsets.map((at) => at + shift);
      h[name] = { dtype, shape, data_offsets: [0, place.length] };
      return { header: h, data: Uint8Array.of(...place, ...data.subarray(old)) };
    });
    await model.load(file);
    expect([...(await model.getWeights())[name].data]).toEqual(new Array(count).fill(1.5));
    await model.load(good);
  }
});

test('500 mutations of a good file: a coded error or the very same numbers, and the model as it was', async () => {
  const numbers = await weightsOf();
  let seed = 12345;
  const random = (n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
  const headerEnd = 8 + Number(new DataView(good.buffer).getBigUint64(0, true));
  let refused = 0;
  for (let round = 0; round < 500; round++) {
    let file = random(4) === 0 ? good.slice(0, random(good.length)) : good.slice();
    if (round % 5 === 0) {
      // One tensor's place moves, by bytes or by whole numbers, forward or back.
      file = changed((header) => {
        const names = Object.keys(header).filter((name) => name !== '__metadata__');
        const entry = header[names[random(names.length)]];
        const by = (1 + random(8)) * (random(2) === 0 ? 1 : -1);
        entry.data_offsets = entry.data_offsets.map((at) => at + by);
      });
    } else {
      for (let n = 0; n <= random(3); n++)
        file[random(Math.min(headerEnd, file.length))] = random(256);
    }
    try {
      await model.load(file);
    } catch (error) {
      refused++;
      expect(error.code).toMatch(/^INVALID_/);
    }
    expect(await weightsOf()).toEqual(numbers);
  }
  expect(refused).toBeGreaterThan(300);
  await model.load(good);
});
