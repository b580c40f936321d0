// Between tensors and the GPU: a request's array may stand for a tensor that lies on the device. It is then an empty
// Float32Array, which a request carries like any other, and this table knows what it means. No GPU code here.
import type { Obstacle } from './backend/backend.js';
import { disposed, HeadwiseError } from './errors.js';
import { isResident, type Request } from './request.js';

/** What a stand-in means. */
export interface Resident {
  /** The GPU that it lies on; another engine cannot use it. */
  readonly owner: object;
  readonly elements: number;
  /** Set once the tensor is disposed of or its device is gone; why, in words. */
  readonly gone: string | undefined;
  readonly gpuBuffer: unknown;
  /** A call that uses it keeps it until `release`, whatever dispose() says meanwhile. */
  retain(): void;
  release(): void;
  download(): Promise<Float32Array>;
  dispose(): void;
}

const residents = new WeakMap<object, Resident>();
// Whether there ever was one: tiny calls without a GPU need not look.
let any = false;
const none: readonly Resident[] = [];

/** A stand-in for `resident`. */
export function standIn(resident: Resident): Float32Array {
  any = true;
  const array = new Float32Array(0);
  residents.set(array, resident);
  return array;
}

export function residentOf(array: object | undefined): Resident | undefined {
  return array === undefined || !any ? undefined : residents.get(array);
}

/** The residents that a request names, each once. */
export function residentsIn(request: object): readonly Resident[] {
  if (!any) return none;
  const found = new Set<Resident>();
  for (const value of Object.values(request).flat() as unknown[]) {
    const resident = typeof value === 'object' && value !== null ? residents.get(value) : undefined;
    if (resident !== undefined) found.add(resident);
  }
  return [...found];
}

/** Why a core cannot do a request: it knows nothing of what lies on a GPU. Undefined when it can. */
export function whyNotOnHost(request: Request): Obstacle | undefined {
  if (isResident(request)) return { reason: 'its results are to stay on the GPU' };
  if (residentsIn(request).length > 0) return { reason: 'an input lies on the GPU' };
  return undefined;
}

/** The arrays on this side, the residents' fetched: one that stands in several places once. */
export async function onHost<A extends readonly Float32Array[]>(
  ...arrays: A
): Promise<{ [K in keyof A]: Float32Array }> {
  const fetched = new Map<Float32Array, Promise<Float32Array> | Float32Array>();
  for (const array of arrays)
    if (!fetched.has(array)) fetched.set(array, residentOf(array)?.download() ?? array);
  return (await Promise.all(arrays.map((array) => fetched.get(array)))) as {
    [K in keyof A]: Float32Array;
  };
}

const tensors = new WeakMap<object, Float32Array>();

/** Tells what stands for a GPU tensor's data in requests. */
export function setTensorData(tensor: object, data: Float32Array): void {
  tensors.set(tensor, data);
}

/** The stand-in of a GPU tensor, or undefined for anything else. Throws for one that is gone. */
export function gpuTensorData(value: object): Float32Array | undefined {
  const data = any ? tensors.get(value) : undefined;
  if (data !== undefined) checkAlive(residentOf(data) as Resident);
  return data;
}

/** The resident, unless it is gone. */
export function checkAlive(resident: Resident): Resident {
  const { gone } = resident;
  if (gone === undefined) return resident;
  throw gone === 'disposed' ? disposed('the GPU tensor') : new HeadwiseError('DEVICE_LOST', gone);
}
