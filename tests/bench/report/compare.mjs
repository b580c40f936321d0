// Bench: this run beside an earlier one. Absolute times of two runs are not comparable on a shared machine, so what is
// compared is headwise's share of the ceiling and its ratio to each rival, both taken inside a run.
import { digits, percent } from './format.mjs';
import { rowsOf } from './summary.mjs';
import { columns } from './table.mjs';

export function comparison(earlier, now) {
  const table = [['', 'threads', 'was', 'is', 'change']];
  const add = (name, threads, was, is, show) => {
    if (was === undefined || is === undefined) return;
    table.push([
      name,
      String(threads),
      show(was),
      show(is),
      `${is >= was ? '+' : '−'}${percent(Math.abs(is / was - 1))}`,
    ]);
  };
  for (const result of now.results) {
    const { shape, threads } = result;
    const old = earlier.results.find(
      (one) => one.shape.name === shape.name && one.threads === threads,
    );
    if (old === undefined) continue;
    const before = rowsOf(old);
    for (const row of rowsOf(result)) {
      const same = before.find(({ id, threads: count }) => id === row.id && count === row.threads);
      if (same === undefined) continue;
      if (row.id.startsWith('headwise'))
        add(
          `${shape.name}: ${row.label}, share of ceiling`,
          row.threads,
          same.share,
          row.share,
          percent,
        );
      else
        add(
          `${shape.name}: headwise to ${row.label}`,
          row.threads,
          same.headwiseFaster,
          row.headwiseFaster,
          digits,
        );
    }
  }
  if (table.length === 1) return 'nothing in common with the earlier run\n';
  return [
    `beside the run of ${earlier.about.date} (${earlier.about.cpu}, ${earlier.about.engine})`,
    ...columns(table),
    '',
  ].join('\n');
}
