// Public: what an engine tells of its GPU and of its calls. No GPU code or type here: these go into everybody's declarations.
import type { CostModel } from './backend/cost-model.js';

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

/**
 * `engine.info.gpuReasonCode`: why no GPU is used, for programs; `gpuReason` says it in words.
 *
 * 'starting': asked for, tested and measured in the background · 'not-asked': backend 'wasm' · 'no-webgpu': the platform has
 * none · 'insecure-page' · 'no-adapter' · 'no-device': an adapter that gives no device · 'not-loaded': the package's GPU code ·
 * 'software': an adapter that is a CPU · 'wrong': it failed the self-test · 'failed': a call failed on it · 'lost'.
 */
export type GpuReasonCode =
  | 'starting'
  | 'not-asked'
  | 'no-webgpu'
  | 'insecure-page'
  | 'no-adapter'
  | 'no-device'
  | 'not-loaded'
  | 'software'
  | 'wrong'
  | 'failed'
  | 'lost';

/**
 * `engine.lastCall.reasonCode`: why that side; those of a missing GPU among them.
 *
 * 'asked': backend 'webgpu' · 'measured': `estimate` decided · 'input-on-gpu', 'cache-on-gpu': what it works on lies there ·
 * 'not-on-gpu': nothing that the GPU can do, or does · 'synchronous': such calls run on the CPU · 'failed': the GPU was asked first.
 */
export type CallReasonCode =
  | GpuReasonCode
  | 'asked'
  | 'measured'
  | 'input-on-gpu'
  | 'cache-on-gpu'
  | 'not-on-gpu'
  | 'synchronous';

/** `engine.lastCall`: which side did the last call, why, and how long it took. */
export interface LastCall {
  op: string;
  side: 'wasm' | 'webgpu';
  /** In words. */
  reason: string;
  reasonCode: CallReasonCode;
  /** What 'auto' decided by. */
  estimate?: { gpuMs: number; cpuMs: number };
  milliseconds: number;
}
