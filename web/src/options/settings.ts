// Options: what follows from the table: which names are known, from options to settings, which settings the GPU does, a piece's
// settings.
import { invalidValue } from '../errors.js';
import type { AttentionSettings } from '../request.js';
import { count, type CallPiece } from './cut.js';
import { isGiven, optionRows, type AnyRow, type CoreTarget, type SettingName } from './table.js';
import type { CallSizes } from './readers.js';

/** The names of all shared options; `out` and `signal` say nothing of what is computed and have no rows. */
export const maskingOptionNames: readonly string[] = [
  ...optionRows.filter(({ read }) => read !== undefined).map(({ option }) => option),
  'out',
  'signal',
];

// Every setting in one order: requests are then alike to the JavaScript engine, whatever the options, and quick to make and to
// read.
const absent = {
  ...{ batch: 0, heads: 0, queries: 0, keys: 0 },
  ...Object.fromEntries(optionRows.map((row) => [row.setting, row.absent])),
} as unknown as AttentionSettings;

const rowsBySetting = new Map<string, AnyRow>(optionRows.map((row) => [row.setting, row]));
const rowsByOption = new Map<string, AnyRow>(
  optionRows.filter(({ read }) => read !== undefined).map((row) => [row.option, row]),
);

type AnySettings = { [Name in keyof AttentionSettings]?: unknown };

/**
 * The shared options among `options` as settings; other names are left to the caller. `made`: settings that the caller has from
 * elsewhere, which count before options.
 */
export function readAttentionSettings(
  options: Record<string, unknown>,
  { batch, heads, queries, keys }: CallSizes,
  made?: Partial<Pick<AttentionSettings, SettingName>>,
): AttentionSettings {
  const settings: AnySettings = { ...absent };
  settings.batch = batch;
  settings.heads = heads;
  settings.queries = queries;
  settings.keys = keys;
  for (const name in options) {
    const row = rowsByOption.get(name);
    const value = options[name];
    if (row === undefined || value === undefined) continue;
    settings[row.setting] = row.read?.(value, { batch, heads, queries, keys });
  }
  if (settings.resident === true && options.out !== undefined) {
    throw invalidValue(
      'out: nothing wanted, because with resident: true the output stays on the GPU',
    );
  }
  if (made !== undefined) Object.assign(settings, made);
  return settings as unknown as AttentionSettings;
}

const isAsked = (value: unknown): boolean => value !== undefined && value !== false;

/** Throws where an option is given that cannot stand beside packed sequences, or with a cache that has a window. */
export function checkBeside(what: 'packed' | 'ring', options: Record<string, unknown>): void {
  for (const row of optionRows) {
    if (row[what] || row.read === undefined || !isAsked(options[row.option])) continue;
    throw invalidValue(
      what === 'packed'
        ? `${row.option}: not together with cuSeqlensQ and cuSeqlensK`
        : `${row.option}: not with a cache that has a window, whose keys come and go`,
    );
  }
}

/** Whether `options` name none of the shared ones, so that the settings are those of a call without. */
export function namesNone(options: Record<string, unknown>): boolean {
  for (const name in options) if (rowsByOption.has(name)) return false;
  return true;
}

const stagedRows = optionRows.filter(({ stage }) => stage !== undefined);
const alwaysStaged = stagedRows.filter(({ always }) => always);

/** Sizes and settings, into the core's struct. `isPlain`: no option is given, which spares a tiny call the look at each. */
export function stageSettings(
  settings: AttentionSettings,
  target: CoreTarget,
  isPlain: boolean,
): void {
  target.set('batch', settings.batch);
  target.set('heads', settings.heads);
  target.set('queries', settings.queries);
  target.set('keys', settings.keys);
  const rows = isPlain ? alwaysStaged : stagedRows;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as AnyRow;
    const setting = settings[row.setting];
    if (row.always || isGiven(row, setting)) row.stage?.(setting as never, target, settings);
  }
}

/**
 * Why the GPU does not do what a request asks for, or undefined. It does what the table says that it does, and knows the
 * `fields` that are named: a request with any other field that is set goes to the CPU.
 */
export function whyNotOnGpu(request: object, fields: ReadonlySet<string>): string | undefined {
  for (const [name, value] of Object.entries(request) as [string, never][]) {
    if (value === undefined || fields.has(name)) continue;
    const row = rowsBySetting.get(name);
    if (row === undefined) return `${name} runs on the CPU`;
    if (row.gpu === true || !isGiven(row, value)) continue;
    const reason = typeof row.gpu === 'string' ? row.gpu : row.gpu(value as never);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Why a call with these settings cannot be divided, or undefined. */
export function whyNotDivided(settings: AttentionSettings): string | undefined {
  const row = optionRows.find(
    (each) => each.cut === undefined && isGiven(each, settings[each.setting]),
  );
  return row && `${row.option} in a call that is too large for the device at once runs on the CPU`;
}

/** A piece's sizes and settings. What the caller has besides stays as it is. */
export function cutSettings<S extends AttentionSettings>(settings: S, piece: CallPiece): S {
  const { batches, heads, queries, keys } = piece;
  const result: AnySettings = {
    ...settings,
    ...{ batch: count(batches), heads: count(heads), queries: count(queries), keys: count(keys) },
  };
  for (const { setting, cut } of optionRows)
    if (cut !== undefined) result[setting] = cut(settings, piece);
  return result as unknown as S;
}
