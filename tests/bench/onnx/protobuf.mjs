// Bench: the few lines of protocol buffers that an ONNX model needs: https://protobuf.dev/programming-guides/encoding.

const text = new TextEncoder();

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  if (rest < 0n) rest += 1n << 64n; // int64 goes as its two's complement
  do {
    const more = rest > 127n;
    bytes.push(Number(rest & 127n) | (more ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return bytes;
}

function concatenate(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** A field that holds a number: wire type 0. */
export const integer = (field, value) => Uint8Array.from([...varint(field << 3), ...varint(value)]);

/** A field that holds a float: wire type 5. */
export const float = (field, value) =>
  Uint8Array.from([...varint((field << 3) | 5), ...new Uint8Array(Float32Array.of(value).buffer)]);

/** A field that holds bytes, a string or (given as its fields) a message: wire type 2. */
export function bytes(field, value) {
  const content =
    typeof value === 'string'
      ? text.encode(value)
      : Array.isArray(value)
        ? concatenate(value)
        : value;
  return concatenate([
    Uint8Array.from([...varint((field << 3) | 2), ...varint(content.length)]),
    content,
  ]);
}

/** A whole message from its fields. */
export const message = concatenate;
