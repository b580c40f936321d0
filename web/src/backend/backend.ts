// Backend: what computes: the core on this thread (wasm/host.ts), the core in a worker (wasm/remote-host.ts), or the GPU
// (webgpu/gpu.ts). The router stands above them and hands each request to one.
import type { HeadwiseError } from '../errors.js';
import type { Request, Response } from '../request.js';
import type { ModuleInfo } from '../wasm/loader.js';

/** What keeps a request from a backend. */
export interface Obstacle {
  reason: string;
  /** Of an array that is too large for the device. */
  bytes?: number;
}

/** Of the core, in bytes. */
export interface HeapUsage {
  heapBytes: number;
  inUseBytes: number;
  peakBytes: number;
}

/** Of the GPU, in bytes. */
export interface DeviceUsage {
  gpuBytes: number;
}

export interface Backend {
  /** In the order of the calls. One that waits for its turn rejects at once when the signal aborts. */
  run(request: Request, signal?: AbortSignal): Promise<Response>;
  /** Why it cannot do a request, or undefined when it can. */
  whyNot(request: Request): Obstacle | undefined;
  memory(): Promise<HeapUsage | DeviceUsage>;
  /** Whatever is queued or running, or comes later, rejects: with `reason` where one can be given, else with DISPOSED. */
  dispose(reason?: HeadwiseError): void;
}

/** A backend that holds a core. Its `run` has read or copied the request's arrays when it returns. */
export interface Host extends Backend {
  readonly info: ModuleInfo;
  /** At once; throws UNSUPPORTED where the core is not on this thread. `out`, if given, becomes the response's output. */
  runSync(request: Request, out?: Float32Array): Response;
  memory(): Promise<HeapUsage>;
}

/** What public objects hand their requests to. */
export type Runner = Pick<Host, 'run' | 'runSync'>;
