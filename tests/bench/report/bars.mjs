// Bench: what the project wants of itself, beside what this run measured. A bar is a ratio, so it holds on any machine that
// is quiet; missed ones are told, and fail nothing.
import { digits, mebibytes } from './format.mjs';
import { rowsOf } from './summary.mjs';
import { columns } from './table.mjs';

const middle = ['12×512×512×64', '8×1024×1024×64', '8×2048×2048×64', '8×4096×4096×64'];
const wide = ['8×1024×1024×128'];
const causal = [...middle, ...wide].map((name) => `${name} causal`);
const large = [...middle.slice(1), ...wide];
const longStep = ['step of 32/8 heads, S 16384, D 128'];
const steps = ['512', '2048', '8192', '16384', '32768'].map(
  (length) => `step of 32/8 heads, S ${length}, D 128`,
);
const layers = ['layer E 512, 8 heads, L 512', 'layer E 768, 12 heads, L 128'];

// `measure` takes a function that finds a row of the shape by contender and threads (the shape's by default).
const best = (...values) => {
  const known = values.filter((value) => value !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined; // headwise is least ahead of the better one
};
const inverse = (value) => (value === undefined ? undefined : 1 / value);
const bars = [
  {
    what: 'share of the multiply-add ceiling, D 64',
    shapes: middle,
    threads: 1,
    bar: 0.84,
    measure: (row) => row('headwise')?.share,
  },
  {
    what: 'share of the multiply-add ceiling, D 128',
    shapes: wide,
    threads: 1,
    bar: 0.89,
    measure: (row) => row('headwise')?.share,
  },
  {
    what: 'share of its ceiling, plain SIMD, D 64',
    shapes: middle,
    threads: 1,
    bar: 0.84,
    measure: (row) => row('headwise-simd')?.share,
  },
  {
    what: 'times onnxruntime-web',
    shapes: [...middle, ...wide],
    bar: 2.4,
    measure: (row) => row('ort-web-mha')?.headwiseFaster,
  },
  {
    what: 'times onnxruntime-web, causal',
    shapes: causal,
    bar: 4.4,
    measure: (row) => row('ort-web-mha')?.headwiseFaster,
  },
  {
    what: 'speed of onnxruntime-node (native)',
    shapes: [...middle, ...wide],
    threads: 1,
    bar: 0.65,
    measure: (row) => row('ort-node-mha')?.headwiseFaster,
  },
  {
    what: 'all threads over one',
    shapes: [...large, ...large.map((name) => `${name} causal`)],
    many: true,
    bar: 1.85,
    measure: (row) => row('headwise', 1)?.headwiseFaster,
  },
  {
    what: 'share of the read bandwidth',
    shapes: ['32×1×16384×128 decoding'],
    bar: 0.8,
    measure: (row) => row('headwise-cache')?.share,
  },
  {
    what: "times onnxruntime-web's better operator",
    shapes: ['32×1×16384×128 decoding'],
    bar: 2,
    measure: (row) => {
      const rival = best(
        row('ort-web-mha')?.headwiseFaster,
        row('ort-web-attention')?.headwiseFaster,
      );
      const cache = row('headwise-cache')?.headwiseFaster;
      return rival && cache && rival / cache;
    },
  },
  {
    what: 'share of the read bandwidth',
    shapes: longStep,
    bar: 0.8,
    measure: (row) => row('headwise')?.share,
  },
  {
    what: 'float16 steps over float32 ones',
    shapes: longStep,
    bar: 1.3,
    measure: (row) => inverse(row('headwise-f16')?.headwiseFaster),
  },
  {
    what: 'int8 steps over float32 ones',
    shapes: longStep,
    bar: 1.8,
    measure: (row) => inverse(row('headwise-int8')?.headwiseFaster),
  },
  {
    what: "times onnxruntime-web's GroupQueryAttention",
    shapes: steps,
    bar: 2,
    measure: (row) => row('ort-web-gqa')?.headwiseFaster,
  },
  {
    what: 'times the same graph in onnxruntime-web',
    shapes: layers,
    bar: 2,
    measure: (row) => row('ort-web-mha')?.headwiseFaster,
  },
  {
    what: 'times onnxruntime-web, tiny call',
    shapes: ['2×4×4×3 tiny'],
    bar: 8,
    measure: (row) => row('ort-web-mha')?.headwiseFaster,
  },
  {
    what: 'times TensorFlow.js, tiny call',
    shapes: ['2×4×4×3 tiny'],
    threads: 1,
    bar: 8,
    measure: (row) => row('tfjs')?.headwiseFaster,
  },
];

/** @returns {{ what: string, where: string, bar: string, measured: string, met: boolean }[]} */
export function barsOf({ results, cold }) {
  const lines = [];
  for (const { what, shapes, threads, many, bar, measure } of bars) {
    for (const result of results) {
      if (!shapes.includes(result.shape.name) || (threads ?? result.threads) !== result.threads)
        continue;
      if (many && result.threads === 1) continue;
      const rows = rowsOf(result);
      const value = measure((id, count = result.threads) =>
        rows.find((row) => row.id === id && row.threads === count),
      );
      if (value === undefined) continue;
      const where = `${result.shape.name}, ${result.threads} thread${result.threads > 1 ? 's' : ''}`;
      lines.push({ what, where, bar: `≥ ${bar}`, measured: digits(value), met: value >= bar });
    }
  }
  for (const row of cold?.firstCalls ?? []) {
    if (row.id !== 'headwise' || row.failure) continue;
    const value = row.first / row.steady;
    const where = `${cold.firstCallShape}, ${row.threads} thread${row.threads > 1 ? 's' : ''}`;
    lines.push({
      what: 'first call over the steady one',
      where,
      bar: '≤ 2.5',
      measured: digits(value),
      met: value <= 2.5,
    });
  }
  for (const row of cold?.memory ?? []) {
    if (row.failure) continue;
    const where = `${cold.longShape}, ${row.threads} thread${row.threads > 1 ? 's' : ''}`;
    const met = row.beyondBytes <= 24 * 2 ** 20;
    lines.push({
      what: 'heap beyond inputs and outputs',
      where,
      bar: '≤ 24 MiB',
      measured: mebibytes(row.beyondBytes),
      met,
    });
  }
  return lines;
}

export function barsTable(report) {
  const lines = barsOf(report);
  if (lines.length === 0) return '';
  const table = lines.map(({ what, where, bar, measured, met }) => [
    `${met ? '✓' : '✗'} ${what}`,
    where,
    bar,
    measured,
  ]);
  return [
    'bars',
    ...columns([['', 'where', 'bar', 'measured'], ...table]).map((line) => `  ${line}`),
    '',
  ].join('\n');
}
