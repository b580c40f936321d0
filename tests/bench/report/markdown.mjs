// Bench: the results as Markdown for the README: one table a thread count, a row a shape, losing rows included.
import { digits, mebibytes, percent, times } from './format.mjs';
import { rowsOf } from './summary.mjs';

const others = [
  ['headwise-cache', 'in its cache'],
  ['ort-web-mha', 'onnxruntime-web MHA'],
  ['ort-web-attention', 'onnxruntime-web Attention'],
  ['headwise-f16', 'float16 cache'],
  ['headwise-int8', 'int8 cache'],
  ['ort-web-gqa', 'onnxruntime-web GroupQueryAttention'],
  ['tfjs', 'TensorFlow.js'],
  ['tfjs-training', 'TensorFlow.js wasm'],
  ['tfjs-cpu-training', 'TensorFlow.js cpu'],
  ['pytorch', 'PyTorch on the CPU (stored)'],
  ['jax-js', 'jax-js'],
  ['plain-js', 'plain JS'],
  ['ort-node-mha', 'onnxruntime-node (native) MHA'],
  ['ort-node-attention', 'onnxruntime-node (native) Attention'],
];

function cell(row) {
  if (row === undefined) return '';
  if (row.failure) return 'fails';
  if (row.notApplicable || row.speed === undefined) return '–';
  const ratio = row.headwiseFaster === undefined ? '' : ` (${times(row.headwiseFaster)})`;
  const memory = row.peakBytes === undefined ? '' : `, ${mebibytes(row.peakBytes)}`;
  return `${digits(row.speed)}${ratio}${memory}`;
}

function tableOf(results, threads) {
  const chosen = results.filter((result) => result.threads === threads);
  const tables = chosen.map((result) => ({ result, rows: rowsOf(result) }));
  const present = others.filter(([id]) =>
    tables.some(({ rows }) => rows.some((row) => row.id === id)),
  );
  const head = ['shape', 'unit', 'headwise', 'of ceiling', ...present.map(([, label]) => label)];
  const lines = tables.map(({ result, rows }) => {
    const find = (id) => rows.find((row) => row.id === id && row.threads === threads);
    const own = find('headwise') ?? {};
    const memory = own.peakBytes === undefined ? '' : `, ${mebibytes(own.peakBytes)}`;
    const speed =
      own.speed === undefined ? (own.failure ?? '–') : `**${digits(own.speed)}**${memory}`;
    return [
      result.shape.name,
      own.unit ?? '',
      speed,
      percent(own.share),
      ...present.map(([id]) => cell(find(id))),
    ];
  });
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i < 2 ? '---' : '--:'))), ...lines.map(line)].join(
    '\n',
  );
}

/** @param {{ about: object, results: object[] }} report */
export function markdown({ about, results }) {
  const threads = [...new Set(results.map((result) => result.threads))];
  const failures = new Set();
  for (const { entries } of results) {
    for (const { label, failure } of entries) if (failure) failures.add(`- ${label}: ${failure}`);
  }
  const stored = new Set(
    results.flatMap(({ entries }) =>
      entries.filter((entry) => entry.stored).map((entry) => `${entry.label}: ${entry.about}.`),
    ),
  );
  return [
    `${about.date.slice(0, 10)}, ${about.platform}, ${about.cpu}, ${about.engine}, headwise ${about.headwise}; medians of ` +
      `${about.rounds} interleaved rounds. In parentheses: how many times faster headwise is; with a training step, the most memory held at a time.`,
    ...threads.map(
      (count) => `**${count} thread${count > 1 ? 's' : ''}**\n\n${tableOf(results, count)}`,
    ),
    ...stored,
    ...(failures.size > 0 ? [`Failures:\n\n${[...failures].join('\n')}`] : []),
    '',
  ].join('\n\n');
}
