// Wasm: what this engine's WebAssembly can do, asked before anything is fetched by validating the very instructions that the
// builds use: a module with one unknown opcode would be rejected whole. What may or may not be fused is tried.
import { unsupported } from '../errors.js';
import type { Variant } from './glue.js';

// A module that exports one function f: () → f32 whose body is `code`, which leaves a v128.
function moduleOf(code: readonly number[]): Uint8Array<ArrayBuffer> {
  const body = [0, ...code, ...firstLane, 0x0b]; // no locals … end
  return Uint8Array.of(
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // magic, version
    ...[1, 5, 1, 0x60, 0, 1, 0x7d], // type section: () → f32
    ...[3, 2, 1, 0], // function section
    ...[7, 5, 1, 1, 0x66, 0, 0], // export section: f
    ...[10, body.length + 2, 1, body.length, ...body], // code section
  );
}

function splat(value: number): number[] {
  const bits = new Uint8Array(Float32Array.of(value).buffer);
  return [0x43, ...bits, 0xfd, 0x13]; // f32.const, f32x4.splat
}
const firstLane = [0xfd, 0x1f, 0]; // f32x4.extract_lane 0
const add = [0xfd, 0xe4, 0x01]; // f32x4.add
const relaxedMadd = [0xfd, 0x85, 0x02]; // f32x4.relaxed_madd

export function hasSimd(): boolean {
  return validates([...splat(0), ...splat(0), ...add]);
}

// (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24; the product alone is rounded to 1 + 2^-11.
const tellTale = [...splat(1 + 2 ** -12), ...splat(1 + 2 ** -12), ...splat(-1 - 2 ** -11)];
const multiplyAdd = [...tellTale, ...relaxedMadd];

export function hasRelaxedSimd(): boolean {
  return validates(multiplyAdd);
}

/** Whether relaxed multiply-add is one instruction here, as it is not in JavaScriptCore on x86. */
function isMultiplyAddFused(): boolean {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(moduleOf(multiplyAdd)));
  return (exports.f as () => number)() > 0;
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
  // Where nothing is fused, the build that says so is the faster one.
  if (wanted === 'auto') return relaxed && isMultiplyAddFused() ? 'relaxed' : 'simd';
  return wanted;
}
