// Validation: a caller's GPUBuffer.
import { invalidShape, invalidType, invalidValue } from '../errors.js';
import { describe } from './arrays.js';

const storageUsage = 0x80;

/** A buffer of at least `bytes` that kernels may read. */
export function readGpuBuffer(name: string, value: unknown, bytes: number): GPUBuffer {
  const { size, usage } = (value ?? {}) as { size?: unknown; usage?: unknown };
  if (typeof value !== 'object' || typeof size !== 'number' || typeof usage !== 'number')
    throw invalidType(`${name}: a GPUBuffer wanted, got ${describe(value)}`);
  if (size < Math.max(bytes, 4))
    throw invalidShape(
      `${name}: at least ${Math.max(bytes, 4)} bytes wanted, got a buffer of ${size}`,
    );
  if ((usage & storageUsage) === 0)
    throw invalidValue(
      `${name}: a buffer with the usage STORAGE wanted, got one of usage ${usage}`,
    );
  return value as GPUBuffer;
}
