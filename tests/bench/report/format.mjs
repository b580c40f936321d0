// Bench: numbers as text, three digits that mean something.

export function digits(value) {
  if (!Number.isFinite(value)) return '–';
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

export const percent = (share) => (share === undefined ? '' : `${(share * 100).toFixed(0)} %`);
export const times = (ratio) => (ratio === undefined ? '' : `${digits(ratio)}×`);
export const mebibytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

export function milliseconds(ms) {
  if (ms === undefined) return '';
  if (ms < 0.1) return `${digits(ms * 1e3)} µs`;
  return ms < 1e4 ? `${digits(ms)} ms` : `${digits(ms / 1e3)} s`;
}
