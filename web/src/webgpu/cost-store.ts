// WebGPU: measured cost models, kept: in a page across visits (localStorage), else for the process. An entry belongs to an
// adapter, a build of the core, its number of threads and a version of the package; one that is damaged is measured anew.
import type { Host } from '../backend/backend.js';
import { costFields, type CostModel } from '../backend/cost-model.js';
import type { Traffic } from '../backend/gpu-life.js';
import { version } from '../version.js';
import type { Gpu } from './gpu.js';
import { measureCosts } from './measure.js';

/** What of `Storage` is used. */
export interface CostStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

const memory = new Map<string, string>();

const processStorage: CostStorage = {
  getItem: (key) => memory.get(key) ?? null,
  setItem: (key, value) => void memory.set(key, value),
};

/** Reading the property alone throws where a page may not store. */
function pageStorage(): CostStorage | undefined {
  try {
    return (globalThis as { localStorage?: CostStorage }).localStorage;
  } catch {
    return undefined;
  }
}

// Node's own localStorage is a file that has to be asked for, with a warning when it is not.
const isPage = typeof document === 'object';

function isCostModel(value: unknown): value is CostModel {
  if (typeof value !== 'object' || value === null) return false;
  return costFields.every((name) => {
    const number = (value as Record<string, unknown>)[name];
    return typeof number === 'number' && Number.isFinite(number) && number > 0;
  });
}

export function readCosts(storage: CostStorage, key: string): CostModel | undefined {
  try {
    const value: unknown = JSON.parse(storage.getItem(key) ?? 'null');
    return isCostModel(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function keepCosts(storage: CostStorage, key: string, costs: CostModel): void {
  try {
    storage.setItem(key, JSON.stringify(costs));
  } catch {
    // Full, or forbidden: the next page measures again.
  }
}

export function keyOf(adapter: string, { threads, variant }: Host['info']): string {
  return `headwise ${version} gpuCost: ${adapter}; ${variant}, ${threads} threads`;
}

export async function knownCosts(gpu: Gpu, core: Host, traffic: Traffic): Promise<CostModel> {
  const key = keyOf(`${gpu.device.opened.description}, ${gpu.precision}`, core.info);
  const kept = isPage ? pageStorage() : undefined;
  const found = readCosts(processStorage, key) ?? (kept && readCosts(kept, key));
  if (found !== undefined) return found;
  const costs = await measureCosts(gpu, core, traffic);
  for (const storage of [processStorage, kept])
    if (storage !== undefined) keepCosts(storage, key, costs);
  return costs;
}
