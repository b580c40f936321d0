// Wasm: what this engine's WebAssembly can do, asked before anything is fetched by validating the very instructions that the
// builds use: a module with one unknown opcode would be rejected whole.
import { unsupported } from '../errors.js';
import type { Variant } from './glue.js';

// A module with one function () → v128 whose body is `code`.
function moduleOf(code: readonly number[]): Uint8Array<ArrayBuffer> {
  const body = [0, ...code, 0x0b]; // no locals … end
  return Uint8Array.of(
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // magic, version
    ...[1, 5, 1, 0x60, 0, 1, 0x7b], // type section: () → v128
    ...[3, 2, 1, 0], // function section
    ...[10, body.length + 2, 1, body.length, ...body], // code section
  );
}

const splat = [0x41, 0, 0xfd, 0x11]; // i32.const 0, i32x4.splat
const add = [0xfd, 0xe4, 0x01]; // f32x4.add
const relaxedMadd = [0xfd, 0x85, 0x02]; // f32x4.relaxed_madd

export function hasSimd(): boolean {
  return validates([...splat, ...splat, ...add]);
}

export function hasRelaxedSimd(): boolean {
  return validates([...splat, ...splat, ...splat, ...relaxedMadd]);
}

function validates(code: readonly number[]): boolean {
  return typeof WebAssembly === 'object' && WebAssembly.validate(moduleOf(code));
}

/** The build to load. Throws UNSUPPORTED when there is none for this engine. */
export function chooseVariant(wanted: Variant | 'auto'): Variant {
  if (typeof WebAssembly !== 'object')
    throw unsupported('this JavaScript engine has no WebAssembly, which is required');
  if (!hasSimd()) {
    throw unsupported('WebAssembly SIMD is required, and this JavaScript engine does not have it');
  }
  const relaxed = hasRelaxedSimd();
  if (wanted === 'relaxed' && !relaxed) {
    throw unsupported(
      "variant 'relaxed' needs relaxed SIMD, which this JavaScript engine does not have; use 'auto'",
    );
  }
  if (wanted === 'auto') return relaxed ? 'relaxed' : 'simd';
  return wanted;
}
