// Tests: tensors in: conversions, shapes, other realms, and what is refused; tensors out.

import { createContext, runInContext } from 'node:vm';
import { createEngine, Tensor, tensor } from 'headwise';
import { errorOf } from './support/known.js';

describe('tensor()', () => {
  test('infers the shape of nested arrays', () => {
    const t = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(t).toBeInstanceOf(Tensor);
    expect(t.shape).toEqual([2, 3]);
    expect(t.data).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6));
    expect(t.toArray()).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
  });

  test('uses a Float32Array without a copy, and converts the rest', () => {
    const floats = Float32Array.of(1, 2, 3, 4);
    expect(tensor(floats, [2, 2]).data).toBe(floats);
    expect(tensor(floats).shape).toEqual([4]);
    expect(tensor(Float64Array.of(0.1, 1e300), [2]).data).toEqual(Float32Array.of(0.1, Infinity));
    expect(tensor([1, 2, 3, 4], [2, 2]).toArray()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(
      tensor(
        [
          [1, 2],
          [3, 4],
        ],
        Int32Array.of(2, 2),
      ).shape,
    ).toEqual([2, 2]);
  });

  const hasFloat16 = typeof Float16Array === 'function';
  if (!hasFloat16) process.stderr.write(`no Float16Array in Node ${process.version}: not tested\n`);
  (hasFloat16 ? test : test.skip)('converts a Float16Array', () => {
    expect(tensor(Float16Array.of(0.5, 2), [2]).data).toEqual(Float32Array.of(0.5, 2));
  });

  test('sizes of zero and rank 0', () => {
    expect(tensor([[], []]).shape).toEqual([2, 0]);
    expect(tensor([], [0, 3]).toArray()).toEqual([]);
    expect(tensor([7], []).toArray()).toBe(7);
  });

  test.each([
    ['ragged rows', () => tensor([[1, 2], [3]]), RangeError, 'INVALID_SHAPE', /data.*2.*1/],
    ['a number among rows', () => tensor([[1], 2]), RangeError, 'INVALID_SHAPE', /data/],
    ['a row among numbers', () => tensor([1, [2]]), RangeError, 'INVALID_SHAPE', /data/],
    ['too few elements', () => tensor([1, 2, 3], [2, 2]), RangeError, 'INVALID_SHAPE', /4.*3/],
    [
      'another nesting',
      () =>
        tensor(
          [
            [1, 2],
            [3, 4],
          ],
          [4, 1],
        ),
      RangeError,
      'INVALID_SHAPE',
      /nested/,
    ],
    ['a negative size', () => tensor([], [-1]), RangeError, 'INVALID_SHAPE', /-1/],
    ['a fractional size', () => tensor([1], [0.5]), RangeError, 'INVALID_SHAPE', /0\.5/],
    ['a NaN size', () => tensor([1], [NaN]), RangeError, 'INVALID_SHAPE', /NaN/],
    ['a size that is a string', () => tensor([1], ['1']), TypeError, 'INVALID_TYPE', /"1"/],
    ['a string element', () => tensor(['1']), TypeError, 'INVALID_TYPE', /"1"/],
    ['a hole', () => tensor([1, , 3]), TypeError, 'INVALID_TYPE', /undefined/], // eslint-disable-line no-sparse-arrays
    [
      'a Uint16Array',
      () => tensor(new Uint16Array(2), [2]),
      TypeError,
      'INVALID_TYPE',
      /Uint16Array/,
    ],
    [
      'an Int32Array',
      () => tensor(new Int32Array(2), [2]),
      TypeError,
      'INVALID_TYPE',
      /Int32Array/,
    ],
    [
      'a DataView',
      () => tensor(new DataView(new ArrayBuffer(8)), [2]),
      TypeError,
      'INVALID_TYPE',
      /DataView/,
    ],
    ['nothing', () => tensor(), TypeError, 'INVALID_TYPE', /undefined/],
    ['null', () => tensor(null), TypeError, 'INVALID_TYPE', /null/],
  ])('refuses %s', async (_, call, kind, code, message) => {
    const error = await errorOf(call);
    expect(error).toBeInstanceOf(kind);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });
});

describe('inputs and outputs', () => {
  let engine;
  beforeAll(async () => {
    engine = await createEngine({ threads: 1 });
  });
  afterAll(() => engine.dispose());

  const q = { data: Float32Array.of(0), shape: [1, 1] };
  const k = { data: Float32Array.of(0, 0), shape: [2, 1] };
  const mean = (v) => Array.from(engine.attentionSync(q, k, v).output.data);

  test('dims stand for shape, as in tensors of other libraries', () => {
    expect(mean({ data: Float32Array.of(2, 4), dims: [2, 1], type: 'float32' })).toEqual([3]);
  });

  test('views with an offset, and views on shared memory', () => {
    const buffer = new Float32Array([9, 2, 4, 9]).buffer;
    expect(mean({ data: new Float32Array(buffer, 4, 2), shape: [2, 1] })).toEqual([3]);
    const shared = new Float32Array(new SharedArrayBuffer(8));
    shared.set([2, 4]);
    expect(mean({ data: shared, shape: [2, 1] })).toEqual([3]);
  });

  test('arrays of another realm', () => {
    const foreign = runInContext(
      '({ f32: Float32Array.of(2, 4), f64: Float64Array.of(2, 4), plain: [[2], [4]], shape: [2, 1] })',
      createContext({}),
    );
    for (const data of [foreign.f32, foreign.f64, foreign.plain]) {
      expect(mean({ data, shape: foreign.shape })).toEqual([3]);
    }
    expect(tensor(foreign.plain).shape).toEqual([2, 1]);
  });

  test('inputs are not written to, outputs own their memory and can be transferred', () => {
    const data = Float32Array.of(2, 4);
    const { output } = engine.attentionSync(q, k, { data, shape: [2, 1] });
    expect(data).toEqual(Float32Array.of(2, 4));
    expect(output).toBeInstanceOf(Tensor);
    expect(output.data.buffer.byteLength).toBe(4);
    const { output: second } = engine.attentionSync(q, k, {
      data: Float32Array.of(10, 20),
      shape: [2, 1],
    });
    expect(output.data[0]).toBe(3);
    expect(second.data[0]).toBe(15);
    structuredClone(output.data, { transfer: [output.data.buffer] });
    expect(output.data).toHaveLength(0);
  });
});
