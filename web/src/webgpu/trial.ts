// WebGPU: a form of the attention kernel (forms.ts) on trial: it computes what the baseline computes, over cases round the
// tile's edges, and then is timed. Start reading at trialOn.
import { readAttention, type AttentionOptions } from '../validation/attention.js';
import type { AttentionRequest } from '../request.js';
import { addAttention, pipelinesOfForm } from './attention.js';
import { Buffers } from './buffers.js';
import { Call } from './call.js';
import { isDirect, isHalf, isPlain, type Form, type Trial } from './forms.js';
import { nudged } from './nudge.js';
import type { Pipelines } from './pipelines.js';
import { planAttention, type DeviceLimits } from './plan.js';
import { tiles, type Tile } from './shaders/tile.js';
import { floats } from './test-numbers.js';

// Inputs of up to 1.5. Float32 sums in another order; halves are wrong by 2^-12 of each input.
const tolerance = { float: 1e-4, half: 2e-2 };

function requestOf(
  [B, H, G, L, S, D, Dv]: readonly [number, number, number, number, number, number, number],
  options: AttentionOptions,
): AttentionRequest {
  const tensor = (heads: number, rows: number, size: number, seed: number) => ({
    data: floats(B * heads * rows * size, seed),
    shape: [B, heads, rows, size],
  });
  return readAttention(tensor(H, L, D, 1), tensor(G, S, D, 2), tensor(G, S, Dv, 3), options)
    .request;
}

/** Whole and split keys, ragged tiles, hidden NaN; and, for forms that know them, all options. */
function cases(tile: Tile, vectors: 1 | 2): AttentionRequest[] {
  const Dv = vectors === 1 ? 12 : 72;
  const L = tile === tiles.tall ? 19 : 1;
  const hidden = requestOf([2, 4, 2, L, 100, 8, Dv], {
    kvLengths: [100, 37],
    window: [70, 3],
    sinks: floats(4, 4),
  });
  hidden.v[hidden.v.length - 1] = NaN;
  hidden.v[hidden.v.length - Dv * 30] = Infinity;
  hidden.k[hidden.k.length - 2] = NaN;
  return [
    hidden,
    requestOf([1, 2, 2, L, 300, 20, Dv], { causal: true, layout: 'bhld' }),
    requestOf([2, 2, 1, L, 70, 8, Dv], {
      softcap: 2,
      mask: { data: Uint8Array.from(floats(70, 5), (x) => (x > -0.5 ? 1 : 0)), shape: [70] },
      bias: { data: floats(70, 6), shape: [70] },
      alibiSlopes: floats(2, 7),
      dropout: { rate: 0.3, seed: 5 },
    }),
  ];
}

/** Long enough to be timed, short enough for one dispatch. */
function timedRequest(tile: Tile, vectors: 1 | 2, { dispatchWork }: DeviceLimits) {
  const [heads, size] = [16, 64 * vectors];
  const pairs = dispatchWork / 2 / (heads * 2 * size);
  if (tile === tiles.flat) {
    const keys = Math.max(64, Math.min(8192, Math.floor(pairs)));
    return requestOf([1, heads, heads, 1, keys, size, size], {});
  }
  const length = Math.max(32, Math.floor(Math.sqrt(pairs) / 32) * 32);
  return requestOf([1, heads, heads, length, length, size, size], {});
}

const rounds = 3;

/** Where a form runs. */
export interface TrialGround {
  device: GPUDevice;
  pipelines: Pipelines;
  limits: DeviceLimits;
}

/** Runs a request in a form `times` times; resolves to the least milliseconds and, of a single run, the output. */
export async function runForm(
  { device, pipelines, limits }: TrialGround,
  buffers: Buffers,
  form: Form,
  request: AttentionRequest,
  times: number,
): Promise<{ least: number; output: Float32Array }> {
  const plan = planAttention(request, limits);
  const made = await pipelinesOfForm(form, plan, request, pipelines);
  const call = new Call(device, buffers);
  let failed = true;
  try {
    const { q, k, v } = request;
    const inputs = call.guard(() => [call.upload(q), call.upload(k), call.upload(v)] as const);
    await call.settled();
    let least = Infinity;
    let output: Float32Array = new Float32Array(0);
    for (let i = 0; i < times; i++) {
      const download = call.guard(() => {
        const slices = addAttention(call, made, request, inputs, plan, limits);
        const rows = request.batch * request.heads * request.queries;
        return times > 1 ? undefined : call.download(slices.output, 0, rows * request.valueDim * 4);
      });
      const start = performance.now();
      await call.finish(limits.dispatchWork, () => undefined);
      await nudged(device.queue.onSubmittedWorkDone(), device);
      least = Math.min(least, performance.now() - start);
      call.clear();
      if (download !== undefined) output = await call.read(download);
    }
    failed = false;
    return { least, output };
  } finally {
    call.end(failed);
  }
}

/** Trials on a device. */
export function trialOn(ground: TrialGround): Trial {
  const wanted = new Map<AttentionRequest, Float32Array>();
  const known = new Map<string, AttentionRequest[]>();
  return async (tile, vectors, form) => {
    const buffers = new Buffers(ground.device, ground.limits.bindingBytes);
    try {
      const key = `${tile.name}${vectors}`;
      const all = known.get(key) ?? cases(tile, vectors);
      known.set(key, all);
      for (const request of all) {
        if (!isPlain(request) && isDirect(form)) continue;
        const { output } = await runForm(ground, buffers, form, request, 1);
        if (form === 'baseline') wanted.set(request, output);
        const right = wanted.get(request);
        const most = isHalf(form) ? tolerance.half : tolerance.float;
        // Comparisons with NaN are false, so that a NaN fails.
        if (!output.every((x, i) => Math.abs(x - (right?.[i] as number)) <= most)) return undefined;
      }
      const request = timedRequest(tile, vectors, ground.limits);
      return (await runForm(ground, buffers, form, request, rounds + 1)).least;
    } catch {
      return undefined; // it does not compile, or the device failed: whatever it was, the baseline stays
    } finally {
      buffers.dispose();
    }
  };
}
