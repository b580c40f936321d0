// Options: the one table of attention's options. A row says what an option is called and which setting it becomes, how it is read,
// what it is when it is not given, how it reaches the core's struct, whether the GPU does it, how a piece of a divided call cuts it,
// and what it cannot stand beside. Validation, staging, the GPU's refusals and division follow from the rows; a setting without a
// row, or a row without a column, does not compile.
import type { AttentionSettings } from '../request.js';
import { readBoolean } from '../validation/options.js';
import { readAnyFloats } from '../validation/shapes.js';
import { readBlockMask } from '../validation/sparse-masks.js';
import * as cut from './cut.js';
import type { MaskingOptions } from './masking-options.js';
import * as read from './readers.js';
import type { CallSizes } from './readers.js';

/** What a call's struct and staging look like to a row. */
export interface CoreTarget {
  set(field: string, value: number): void;
  setStrides(field: string, strides: readonly number[]): void;
  input(field: string, array: Float32Array | Int32Array | Uint8Array): void;
  output(field: string, result: 'weights' | 'scores' | 'logSumExp', length: number): void;
}

/** The settings that are no sizes. */
export type SettingName = Exclude<keyof AttentionSettings, keyof CallSizes>;

interface Row<Name extends SettingName> {
  /** Its name for users. */
  option: keyof MaskingOptions | 'cuSeqlensQ';
  /** From the option's value to the setting. None: another reader makes it (packed.ts). */
  read?: (value: unknown, sizes: CallSizes) => AttentionSettings[Name];
  /** The setting of a call without the option. */
  absent: AttentionSettings[Name];
  /** Whether the setting says more than `absent`, where comparing the two does not tell. */
  isGiven?: (setting: AttentionSettings[Name]) => boolean;
  /** Puts a setting that is given into the core's struct. `always`: also one that is not. */
  stage?: (
    setting: NonNullable<AttentionSettings[Name]>,
    target: CoreTarget,
    settings: AttentionSettings,
  ) => void;
  always?: boolean;
  /** true: its kernels do it. Else why not, or what tells of a setting why not. */
  gpu: true | string | ((setting: NonNullable<AttentionSettings[Name]>) => string | undefined);
  /** A piece's setting. None: a call with it is not divided. */
  cut?: (settings: AttentionSettings, piece: cut.CallPiece) => AttentionSettings[Name];
  /** Whether it may stand beside packed sequences. */
  packed: boolean;
  /** Whether a cache with a window, whose keys come and go, takes it. */
  ring: boolean;
}

const rows: { readonly [Name in SettingName]: Row<Name> } = {
  softcap: {
    option: 'softcap',
    read: read.readSoftcap,
    absent: 0,
    stage: (softcap, target) => target.set('softcap', softcap),
    gpu: true,
    cut: (settings) => settings.softcap,
    ...{ packed: true, ring: true },
  },
  bias: {
    option: 'bias',
    read: (value, sizes) =>
      read.broadcast('bias', readAnyFloats('bias', value), read.targetOf(sizes)),
    absent: undefined,
    stage: ({ data, strides }, target) => {
      target.input('bias', data);
      target.setStrides('bias_strides', strides);
    },
    gpu: true,
    cut: ({ bias }, piece) => bias && cut.broadcast(bias, piece),
    ...{ packed: false, ring: false },
  },
  mask: {
    option: 'mask',
    read: (value, sizes) => read.readMask(value, read.targetOf(sizes)),
    absent: undefined,
    stage: ({ data, strides, bits }, target) => {
      target.input('mask', data);
      target.setStrides('mask_strides', strides);
      target.set('mask_bits', bits === true ? 1 : 0);
    },
    gpu: ({ bits }) => (bits === true ? 'a mask of bits runs on the CPU' : undefined),
    cut: ({ mask }, piece) => mask && cut.broadcast(mask, piece),
    ...{ packed: false, ring: false },
  },
  blockMask: {
    option: 'blockMask',
    read: (value, { queries, keys }) => readBlockMask(value, queries, keys),
    absent: undefined,
    stage: ({ size, rows: blockRows, columns }, target) => {
      target.set('block_size', size);
      target.input('block_rows', blockRows);
      target.input('block_columns', columns);
    },
    gpu: 'blockMask runs on the CPU',
    ...{ packed: false, ring: false },
  },
  keyPaddingMask: {
    option: 'keyPaddingMask',
    read: (value, { batch, keys }) => read.readKeyPaddingMask(value, batch, keys),
    absent: undefined,
    stage: (mask, target) => target.input('key_padding_mask', mask),
    gpu: true,
    cut: ({ keyPaddingMask: data, keys }, piece) =>
      data && cut.broadcast({ data, strides: [keys, 0, 0, 1] }, piece).data,
    ...{ packed: false, ring: false },
  },
  kvLengths: {
    option: 'kvLengths',
    read: (value, { batch, keys }) => read.readLengths('kvLengths', value, batch, keys),
    absent: undefined,
    stage: (lengths, target) => target.input('kv_lengths', lengths),
    gpu: true,
    cut: (settings, piece) => cut.limits(settings, piece).kvLengths,
    ...{ packed: false, ring: true },
  },
  qLengths: {
    option: 'qLengths',
    read: (value, { batch, queries }) => read.readLengths('qLengths', value, batch, queries),
    absent: undefined,
    stage: (lengths, target) => target.input('q_lengths', lengths),
    gpu: true,
    cut: (settings, piece) => cut.limits(settings, piece).qLengths,
    ...{ packed: false, ring: true },
  },
  causal: {
    option: 'causal',
    read: (value) => readBoolean('causal', value, false),
    absent: false,
    stage: (_, target) => target.set('causal', 1),
    gpu: true,
    cut: (settings) => settings.causal,
    ...{ packed: true, ring: true },
  },
  causalOffsets: {
    option: 'causalOffset',
    read: (value, { batch }) => read.readOffsets(value, batch),
    absent: undefined,
    stage: (offsets, target) => target.input('causal_offsets', offsets),
    gpu: true,
    cut: (settings, piece) => cut.limits(settings, piece).causalOffsets,
    ...{ packed: true, ring: true },
  },
  window: {
    option: 'window',
    read: read.readWindow,
    absent: [-1, -1],
    isGiven: ([left, right]) => left >= 0 || right >= 0,
    stage: ([left, right], target) => {
      target.set('window_left', left);
      target.set('window_right', right);
    },
    always: true, // the struct's zeros are a window of one key
    gpu: true,
    cut: (settings) => settings.window,
    ...{ packed: true, ring: false },
  },
  alibiSlopes: {
    option: 'alibiSlopes',
    read: (value, { heads }) => read.readPerHead('alibiSlopes', value, heads),
    absent: undefined,
    stage: (slopes, target) => target.input('alibi_slopes', slopes),
    gpu: true,
    cut: ({ alibiSlopes }, { heads }) => alibiSlopes && cut.range(alibiSlopes, heads),
    ...{ packed: true, ring: true },
  },
  sinks: {
    option: 'sinks',
    read: (value, { heads }) => read.readPerHead('sinks', value, heads),
    absent: undefined,
    stage: (sinks, target) => target.input('sinks', sinks),
    gpu: true,
    // With several ranges of keys they are left to the joining.
    cut: ({ sinks }, { heads, isOneOfSeveralKeyRanges }) =>
      isOneOfSeveralKeyRanges ? undefined : sinks && cut.range(sinks, heads),
    ...{ packed: true, ring: true },
  },
  dropout: {
    option: 'dropout',
    read: read.readDropout,
    absent: undefined,
    stage: ({ rate, seed: [low, high] }, target) => {
      target.set('dropout_rate', rate);
      target.set('dropout_seed_low', low);
      target.set('dropout_seed_high', high);
    },
    gpu: true,
    // Not cut: its generator counts from the whole's first element, which a piece does not know.
    ...{ packed: true, ring: true },
  },
  weightHeads: {
    option: 'returnWeights',
    read: (value, { heads }) => read.readWeightHeads(value, heads),
    absent: undefined,
    stage: (wanted, target, { batch, heads, queries, keys }) => {
      const count = wanted === 'all' ? heads : wanted.length;
      target.set('weight_head_count', count);
      if (wanted !== 'all') target.input('weight_heads', wanted);
      target.output('weights', 'weights', batch * count * queries * keys);
    },
    gpu: true,
    cut: (settings, { heads }) =>
      settings.weightHeads && Int32Array.from(cut.slotsOf(settings, heads), ({ head }) => head),
    ...{ packed: false, ring: false },
  },
  scoreStage: {
    option: 'returnScores',
    read: read.readScoreStage,
    absent: 0,
    stage: (stage, target, { batch, heads, queries, keys }) => {
      target.set('score_stage', stage);
      target.output('scores', 'scores', batch * heads * queries * keys);
    },
    gpu: true,
    cut: (settings) => settings.scoreStage,
    ...{ packed: false, ring: false },
  },
  logSumExp: {
    option: 'returnLogSumExp',
    read: (value) => readBoolean('returnLogSumExp', value, false),
    absent: false,
    stage: (_, target, { batch, heads, queries, packed }) =>
      target.output(
        'log_sum_exp',
        'logSumExp',
        heads * (packed === undefined ? batch * queries : packed.queries),
      ),
    gpu: true,
    // Several ranges of keys are merged by it.
    cut: ({ logSumExp }, { isOneOfSeveralKeyRanges }) => logSumExp || isOneOfSeveralKeyRanges,
    ...{ packed: true, ring: true },
  },
  packed: {
    option: 'cuSeqlensQ',
    absent: undefined,
    stage: ({ qStarts, kStarts, queries }, target) => {
      target.input('q_starts', qStarts);
      target.input('k_starts', kStarts);
      target.setStrides('log_sum_exp_strides', [0, queries, 1]);
    },
    gpu: 'packed sequences run on the CPU',
    ...{ packed: true, ring: false },
  },
  resident: {
    option: 'resident',
    read: (value) => readBoolean('resident', value, false),
    absent: false,
    gpu: true,
    cut: () => false, // pieces are put together on this side
    ...{ packed: true, ring: true },
  },
};

/** A row whose setting's type is not looked at. All have every column, in one order: they are alike to the JavaScript engine. */
export interface AnyRow {
  setting: SettingName;
  option: string;
  read: ((value: unknown, sizes: CallSizes) => unknown) | undefined;
  absent: unknown;
  isGiven: ((setting: never) => boolean) | undefined;
  stage: ((setting: never, target: CoreTarget, settings: AttentionSettings) => void) | undefined;
  always: boolean;
  gpu: true | string | ((setting: never) => string | undefined);
  cut: ((settings: AttentionSettings, piece: cut.CallPiece) => unknown) | undefined;
  packed: boolean;
  ring: boolean;
}

/** The rows, in the order in which options are staged. */
export const optionRows: readonly AnyRow[] = (Object.keys(rows) as SettingName[]).map((setting) => {
  const row = rows[setting] as Row<SettingName>;
  return {
    setting,
    option: row.option,
    read: row.read,
    absent: row.absent,
    isGiven: row.isGiven as AnyRow['isGiven'],
    stage: row.stage as AnyRow['stage'],
    always: row.always === true,
    gpu: row.gpu as AnyRow['gpu'],
    cut: row.cut,
    packed: row.packed,
    ring: row.ring,
  };
});

/** Whether a setting says more than a call without the row's option. */
export function isGiven({ absent, isGiven: tells }: AnyRow, setting: unknown): boolean {
  if (setting === undefined || setting === absent) return false;
  return tells === undefined || tells(setting as never);
}
