// Tests: the kernels' code, as it stands in the built files: that relaxed SIMD is really used where it should be and nowhere
// else, and that the innermost loops hold no more instructions than they did. A guard against slow code that a noisy machine
// does not disturb; raising a number here is a reviewed change.
import { fileURLToPath } from 'node:url';
import { innermostLoops } from './support/wasm-loops.js';

const file = (variant) =>
  fileURLToPath(new URL(`../../dist/wasm/headwise-${variant}.wasm`, import.meta.url));

const count = ({ counts }, op) => counts[op] ?? 0;
const splats = (loop) => count(loop, 'v128.load32_splat');
const loads = (loop) => count(loop, 'v128.load');

describe.each(['relaxed', 'simd'])('the kernels of the %s build', (variant) => {
  // A multiply-add is one instruction with relaxed SIMD, two without.
  const multiplyAdds = (loop) =>
    count(loop, variant === 'relaxed' ? 'f32x4.relaxed_madd' : 'f32x4.mul');
  const extra = variant === 'relaxed' ? 0 : 1;
  let loops;
  beforeAll(async () => {
    loops = await innermostLoops(file(variant));
  });

  test('relaxed instructions are in the relaxed build alone', () => {
    const relaxed = loops
      .flatMap(({ counts }) => Object.entries(counts))
      .filter(([op]) => op.includes('relaxed'))
      .reduce((sum, [, n]) => sum + n, 0);
    if (variant === 'relaxed') expect(relaxed).toBeGreaterThan(100);
    else expect(relaxed).toBe(0);
  });

  test('the product: sixteen steps of the tile, each row a splat, with little around and nothing loaded ahead', () => {
    const rows = variant === 'relaxed' ? 6 : 4;
    const steps = 16;
    const products = loops.filter((loop) => splats(loop) === rows * steps);
    expect(products.length).toBeGreaterThanOrEqual(2); // store, add
    for (const loop of products) {
      expect(loads(loop)).toBe(2 * steps);
      expect(multiplyAdds(loop)).toBe(2 * rows * steps);
      const needed = multiplyAdds(loop) * (1 + extra) + splats(loop) + loads(loop);
      // A pointer advances for each row and for the panel, and the turns end where the panel does.
      expect(loop.size).toBeLessThanOrEqual(needed + 2 * (rows + 1) + 2);
      // The panel's two vectors and a splat. More, and V8's registers do not hold them.
      expect(loop.ahead).toBeLessThanOrEqual(3);
    }
  });

  test('the softmax: 8 scores in at most 34 instructions where they are bounded, else 4 in 25; no vector literal', () => {
    const exponentials = loops.filter(
      (loop) =>
        count(loop, 'i32x4.shl') > 0 &&
        count(loop, 'i32x4.shl') === loads(loop) &&
        count(loop, 'v128.store') === loads(loop) &&
        count(loop, 'v128.const') === 0,
    );
    const bounded = exponentials.filter((loop) => count(loop, 'f32x4.pmax') === 0);
    expect(bounded.map(loads)).toEqual([2]);
    expect(exponentials.length).toBeGreaterThanOrEqual(3); // natural scores and those in units of ln 2
    const most = (loop) => (bounded.includes(loop) ? 34 : 25) + 6 * extra * loads(loop);
    for (const loop of exponentials) expect(loop.size).toBeLessThanOrEqual(most(loop));
  });
});
