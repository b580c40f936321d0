// Tests: comparisons of float arrays that say where the first difference is. NaN equals nothing but an expected NaN.

const flat = (x) => (x.data ? Array.from(x.data) : Array.from(x).flat(Infinity));

/** Numbers of `actual` (tensor or array) are within `tolerance` of those of `expected`; infinities match exactly. */
export function expectClose(actual, expected, tolerance, what = 'value') {
  const a = flat(actual);
  const e = flat(expected);
  expect(a).toHaveLength(e.length);
  for (let i = 0; i < a.length; i++) {
    const bound = tolerance.absolute + tolerance.relative * Math.abs(e[i]);
    const close = Object.is(a[i], e[i]) || a[i] === e[i] || Math.abs(a[i] - e[i]) <= bound;
    // Comparisons with NaN are false, so that a NaN fails.
    if (!close) throw new Error(`${what}[${i}] is ${a[i]}, not ${e[i]} ± ${bound}`);
  }
}

/** Bit for bit, but that any NaN equals any other. */
export function expectSame(actual, expected, what = 'value') {
  const a = flat(actual);
  const e = flat(expected);
  expect(a).toHaveLength(e.length);
  for (let i = 0; i < a.length; i++) {
    if (!Object.is(a[i], e[i])) throw new Error(`${what}[${i}] is ${a[i]}, not exactly ${e[i]}`);
  }
}
