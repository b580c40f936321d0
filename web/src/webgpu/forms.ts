// WebGPU: the forms that the attention kernel is written in, and which of them a device uses for a call. A form is used where
// it was measured on the device, was right and was faster than what is there without it. Start reading at Forms.of.
import type { AttentionSettings } from '../request.js';
import type { Sizes } from './plan.js';
import { lanesOf } from './shaders/attention.js';
import { tiles, type Tile } from './shaders/tile.js';

/**
 * 'baseline': any sizes, any device. 'vec4': four floats a load. 'subgroups': that, and rows reduced within subgroups. 'direct':
 * no keys or values in workgroup memory (shaders/direct.ts). 'half…': the same over q, k and v stored as halves.
 */
const formNames = [
  'baseline',
  'vec4',
  'subgroups',
  'direct',
  'halfVec4',
  'halfSubgroups',
  'halfDirect',
] as const;
export type Form = (typeof formNames)[number];

export const isHalf = (form: Form): boolean => form.startsWith('half');
export const isDirect = (form: Form): boolean => form === 'direct' || form === 'halfDirect';

/** What is known of a device, and what the caller asks of it. */
export interface FormLimits {
  software: boolean;
  /** Threads of its smallest subgroup; 0 without the feature. */
  subgroupSize: number;
  /** gpuPrecision 'f16'. */
  half: boolean;
}

/** The forms worth a trial on a device. */
export function candidates(tile: Tile, { software, subgroupSize, half }: FormLimits): Form[] {
  const has = (form: Form): boolean =>
    form !== 'baseline' &&
    (half || !isHalf(form)) &&
    (tile === tiles.tall || !isDirect(form)) &&
    (!/subgroups/i.test(form) || subgroupSize >= lanesOf(tile));
  // A software adapter compiles for seconds, and of all forms the direct one alone gains there (three times; the others 5 %).
  return formNames.filter((form) => has(form) && (!software || isDirect(form)));
}

type Request = Sizes &
  Pick<
    AttentionSettings,
    'bias' | 'mask' | 'keyPaddingMask' | 'alibiSlopes' | 'softcap' | 'dropout'
  > & {
    qStrides: readonly number[];
    kStrides: readonly number[];
    vStrides: readonly number[];
    outStrides: readonly number[];
  };

/** Whether a call's rows can be read four elements at a time. */
function fitsVectors(request: Request): boolean {
  const { headDim, valueDim, qStrides, kStrides, vStrides, outStrides } = request;
  // With D = 0 there is nothing that could be bound.
  if (headDim === 0) return false;
  return [headDim, valueDim, ...qStrides, ...kStrides, ...vStrides, ...outStrides].every(
    (size) => size % 4 === 0,
  );
}

/** Whether no option of a call needs code that the direct form lacks. */
export function isPlain(request: Request): boolean {
  const { bias, mask, keyPaddingMask, alibiSlopes, softcap, dropout } = request;
  return (
    [bias, mask, keyPaddingMask, alibiSlopes, dropout].every((option) => option === undefined) &&
    softcap === 0
  );
}

/** Multiply-adds below which a call takes the baseline: it is over before a form could gain, and has to await no trial. */
export const leastFormWork = 2 ** 22;

/** The fastest form of all, and the fastest that knows every option. */
export interface Choice {
  plain: Form;
  any: Form;
}

/** What a trial of one form on the device came to, or undefined when its numbers were wrong or it failed. */
export type Trial = (tile: Tile, vectors: 1 | 2, form: Form) => Promise<number | undefined>;

// A form has to be this much faster than the one without it: less is noise.
const leastGain = 1.05;

/** A device's choices, by tile and vectors; each is made once, before the first call that is large enough. */
export class Forms {
  readonly #limits: FormLimits;
  readonly #trial: Trial;
  readonly #choices = new Map<string, Promise<Choice>>();
  readonly #known: Record<string, Choice> = {};

  constructor(limits: FormLimits, trial: Trial) {
    this.#limits = limits;
    this.#trial = trial;
  }

  async of(tile: Tile, vectors: 1 | 2, request: Request): Promise<Form> {
    const { batch, heads, queries, keys, headDim, valueDim } = request;
    const work = batch * heads * queries * keys * (headDim + valueDim);
    if (work < leastFormWork || !fitsVectors(request)) return 'baseline';
    const key = `${tile.name}${vectors}`;
    let choice = this.#choices.get(key);
    if (choice === undefined) {
      choice = this.#choose(tile, vectors);
      this.#choices.set(key, choice);
      choice.then(
        (made) => (this.#known[key] = made),
        () => this.#choices.delete(key),
      );
    }
    const { plain, any } = await choice;
    return isPlain(request) ? plain : any;
  }

  /** What was chosen so far, by tile and vectors, for `info`. */
  get chosen(): Readonly<Record<string, Choice>> {
    return { ...this.#known };
  }

  async #choose(tile: Tile, vectors: 1 | 2): Promise<Choice> {
    const forms = candidates(tile, this.#limits);
    const choice: Choice = { plain: 'baseline', any: 'baseline' };
    if (forms.length === 0) return choice;
    const first = await this.#trial(tile, vectors, 'baseline');
    if (first === undefined) return choice;
    const best = { plain: first, any: first };
    for (const form of forms) {
      const took = await this.#trial(tile, vectors, form);
      if (took === undefined) continue;
      for (const kind of isDirect(form) ? (['plain'] as const) : (['plain', 'any'] as const)) {
        if (took * leastGain > best[kind]) continue;
        best[kind] = took;
        choice[kind] = form;
      }
    }
    return choice;
  }
}
