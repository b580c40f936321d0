// Public: what an engine tells of its GPU and of its calls. No GPU code or type here: these go into everybody's declarations.
import type { CostModel } from './cost-model.js';

/** `engine.info.gpu`. */
export interface GpuInfo {
  /** Vendor, architecture and name, as far as the platform tells. */
  description: string;
  /** A CPU that pretends to be a GPU; 'auto' does not use it. */
  software: boolean;
  /** Optional features of the device. Halves are stored without the first; arithmetic is float32 always. */
  f16: boolean;
  subgroups: boolean;
  /** As the option `gpuPrecision`. */
  precision: 'f32' | 'f16';
  /**
   * The forms of the attention kernel that were measured to be fastest on this device: by the kernel's shape ('tall1': many
   * rows, up to 64 value columns; 'tall2': more columns; 'flat1', 'flat2': few rows, as in decoding), that for calls without
   * masks, bias, slopes, softcap and dropout, and that for all. One is measured before the first call of its shape that is
   * large enough to gain; smaller calls take 'baseline'.
   */
  variants: Readonly<Record<string, Readonly<{ plain: string; any: string }>>>;
  /** Bytes of the largest array that it takes. */
  maxArrayBytes: number;
  /** What 'auto' decides by; null with backend 'webgpu', which decides nothing. */
  cost: Readonly<CostModel> | null;
}

/** `engine.lastCall`: which side did the last call, why, and how long it took. */
export interface LastCall {
  op: string;
  side: 'wasm' | 'webgpu';
  reason: string;
  milliseconds: number;
}
