// Tests: the same numbers in the other order of heads and rows.

/** [B,H,L,D] as [B,L,H,D], and the other way round: `{ data, shape }` with the second and third axis swapped. */
export function swapped({ data, shape: [batch, outer, inner, size] }) {
  const from = (n) => {
    const [d, o, i] = [
      n % size,
      Math.floor(n / size) % outer,
      Math.floor(n / size / outer) % inner,
    ];
    return ((Math.floor(n / size / outer / inner) * outer + o) * inner + i) * size + d;
  };
  return {
    data: Float32Array.from(data, (_, n) => data[from(n)]),
    shape: [batch, inner, outer, size],
  };
}
