// WebGPU: every buffer of the package's own: pooled by size, counted, and destroyed by dispose().

/** GPUBufferUsage's bits, which Node has no global for. */
export const usage = {
  /** What kernels read and write, and what is copied from and to. */
  storage: 0x80 | 0x04 | 0x08,
  uniform: 0x40 | 0x08,
  readBack: 0x01 | 0x08,
} as const;

export type BufferKind = keyof typeof usage;

/** What a kernel is bound to: the first `bytes` of a buffer. */
export interface Slice {
  buffer: GPUBuffer;
  bytes: number;
}

// Bindings may not be empty, so an empty array has this many bytes all the same.
const leastBytes = 256;

/** Idle buffers are kept up to this many times what is in use at most, so that varying sizes leave no trail. */
const mostIdleShare = 1;

interface Idle {
  buffer: GPUBuffer;
  kind: BufferKind;
}

/** The buffers of one engine on one device. */
export class Buffers {
  readonly #device: GPUDevice;
  readonly #mostBytes: number;
  // The least recently used first.
  #idle: Idle[] = [];
  readonly #inUse = new Map<GPUBuffer, BufferKind>();
  #idleBytes = 0;
  #usedBytes = 0;
  #peakBytes = 0;
  #disposed = false;

  constructor(device: GPUDevice, mostBytes: number) {
    this.#device = device;
    this.#mostBytes = mostBytes;
  }

  /** All bytes on the device, idle ones among them. */
  get bytes(): number {
    return this.#idleBytes + this.#usedBytes;
  }

  /** At least `bytes`, with whatever is in it. */
  take(kind: BufferKind, bytes: number): Slice {
    const size = sizeClass(Math.max(bytes, leastBytes), this.#mostBytes);
    const at = this.#idle.findIndex((idle) => idle.kind === kind && idle.buffer.size === size);
    let buffer: GPUBuffer;
    if (at >= 0) {
      buffer = (this.#idle.splice(at, 1)[0] as Idle).buffer;
      this.#idleBytes -= size;
    } else {
      buffer = this.#device.createBuffer({
        label: `headwise ${kind}`,
        size,
        usage: usage[kind],
      });
    }
    this.#inUse.set(buffer, kind);
    this.#usedBytes += size;
    this.#peakBytes = Math.max(this.#peakBytes, this.#usedBytes);
    return { buffer, bytes: Math.max(bytes, leastBytes) };
  }

  give({ buffer }: Slice): void {
    const kind = this.#inUse.get(buffer);
    if (kind === undefined) return;
    this.#inUse.delete(buffer);
    this.#usedBytes -= buffer.size;
    if (this.#disposed) {
      buffer.destroy();
      return;
    }
    this.#idle.push({ buffer, kind });
    this.#idleBytes += buffer.size;
    while (this.#idleBytes > this.#peakBytes * mostIdleShare) this.#destroyOldest();
    if (this.#usedBytes === 0) this.#peakBytes = Math.max(this.#idleBytes, 2 ** 20);
  }

  /** For buffers whose content may be wrong or whose device is gone. */
  drop(slice: Slice): void {
    if (!this.#inUse.has(slice.buffer)) return;
    this.#inUse.delete(slice.buffer);
    this.#usedBytes -= slice.buffer.size;
    slice.buffer.destroy();
  }

  dispose(): void {
    this.#disposed = true;
    while (this.#idle.length > 0) this.#destroyOldest();
    for (const buffer of this.#inUse.keys()) buffer.destroy();
    this.#inUse.clear();
    this.#usedBytes = 0;
  }

  #destroyOldest(): void {
    const { buffer } = this.#idle.shift() as Idle;
    this.#idleBytes -= buffer.size;
    buffer.destroy();
  }
}

/** The next power of two, or three quarters of it: growing sizes meet few classes, and at most a third is wasted. */
export function sizeClass(bytes: number, most: number): number {
  let size = leastBytes;
  while (size < bytes) size *= 2;
  if (size * 0.75 >= bytes && size > leastBytes * 2) size *= 0.75;
  // A class above what the device allows gives way to the very size.
  return size <= most ? size : Math.ceil(bytes / 4) * 4;
}
