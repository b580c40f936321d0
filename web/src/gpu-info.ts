// Public: what an engine tells of its GPU and of its calls. No GPU code or type here: these go into everybody's declarations.
import type { CostModel } from './cost-model.js';

/** `engine.info.gpu`. */
export interface GpuInfo {
  /** Vendor, architecture and name, as far as the platform tells. */
  description: string;
  /** A CPU that pretends to be a GPU; 'auto' does not use it. */
  software: boolean;
  /** Optional features of the device. The kernels use neither yet: all arithmetic is float32. */
  f16: boolean;
  subgroups: boolean;
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
