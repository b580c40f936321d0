// Bench: the results as text for a terminal.
import { digits, mebibytes, milliseconds, percent, times } from './format.mjs';
import { rowsOf } from './summary.mjs';

/** Lines of aligned columns; all but the first are aligned right. */
export function columns(rows) {
  const widths = rows[0].map((_, column) =>
    Math.max(...rows.map((row) => [...row[column]].length)),
  );
  const pad = (text, width, left) => {
    const space = ' '.repeat(width - [...text].length);
    return left ? text + space : space + text;
  };
  return rows.map((row) =>
    row
      .map((cell, i) => pad(cell, widths[i], i === 0))
      .join('  ')
      .trimEnd(),
  );
}

export function shapeTable(result) {
  const rows = rowsOf(result);
  const { kind, recomputed } = result.shape;
  const memory = kind === 'training';
  const table = [
    [
      ...['', 'threads', 'call', 'speed', 'of ceiling', 'headwise is', 'difference', '± rounds'],
      ...(recomputed ? ['without recomputed scores'] : []),
      ...(memory ? ['memory at most'] : []),
    ],
  ];
  const notes = [];
  for (const row of rows) {
    if (row.notApplicable || row.failure) {
      notes.push(`  ${row.failure ? '✗' : '–'} ${row.label}: ${row.failure ?? row.notApplicable}`);
      continue;
    }
    if (row.stored) notes.push(`  · ${row.label}: ${row.about}`);
    table.push([
      row.label,
      String(row.threads),
      milliseconds(row.ms),
      row.speed === undefined ? '' : `${digits(row.speed)} ${row.unit}`,
      percent(row.share),
      row.headwiseFaster === undefined ? '' : times(row.headwiseFaster),
      row.maxDifference === undefined ? '' : row.maxDifference.toExponential(1),
      row.spread === undefined ? '' : percent(row.spread),
      ...(recomputed ? [percent(row.shareWithoutRecomputed)] : []),
      ...(memory ? [row.peakBytes === undefined ? '' : mebibytes(row.peakBytes)] : []),
    ]);
  }
  const head = `${result.shape.name} · ${result.threads} thread${result.threads > 1 ? 's' : ''}`;
  return [head, ...columns(table).map((line) => `  ${line}`), ...notes, ''].join('\n');
}

export function coldTables(cold) {
  const name = ({ label, threads }) => `${label}, ${threads} thread${threads > 1 ? 's' : ''}`;
  const failed = (row) => row.failure !== undefined;
  const failures = [...cold.firstCalls, ...cold.startUp, ...cold.memory].filter(failed);
  const first = cold.firstCalls
    .filter((row) => !failed(row))
    .map((row) => [
      name(row),
      ...[row.first, row.second, row.tenth, row.steady].map(milliseconds),
      times(row.first / row.steady),
    ]);
  const start = cold.startUp
    .filter((row) => !failed(row))
    .map((row) => [name(row), ...[row.created, row.result].map(milliseconds)]);
  const memory = cold.memory
    .filter((row) => !failed(row))
    .map((row) => [
      name(row),
      ...[row.beyondBytes, row.peakBytes, row.heapBytes].map(mebibytes),
      milliseconds(row.ms),
    ]);
  const section = (title, head, rows) =>
    rows.length === 0 ? [] : [title, ...columns([head, ...rows]).map((line) => `  ${line}`), ''];
  return [
    ...section(
      `first calls of a fresh process, ${cold.firstCallShape}`,
      ['', 'first', 'second', 'tenth', 'steady', 'first/steady'],
      first,
    ),
    ...section('start-up, from nothing', ['', 'ready', 'first result'], start),
    ...section(
      `memory, ${cold.longShape}`,
      ['', 'beyond inputs and output', 'in use at most', 'heap', 'the call'],
      memory,
    ),
    ...failures.map((row) => `  ✗ ${name(row)}: ${row.failure}`),
  ].join('\n');
}
