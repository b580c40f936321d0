// Bench: the entry. `npm run bench` builds the package and installs the rivals first; on its own, `node tests/bench/run.mjs`
// measures the package as it lies in dist/. Start reading at suite.mjs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { arch, cpus, platform, release } from 'node:os';
import { fileURLToPath } from 'node:url';

import { help, readArgs } from './args.mjs';
import { runCold } from './cold.mjs';
import { contenders } from './contenders/index.mjs';
import { ensureNode } from './node24.mjs';
import { barsTable } from './report/bars.mjs';
import { comparison } from './report/compare.mjs';
import { markdown } from './report/markdown.mjs';
import { updateReadme } from './report/readme.mjs';
import { coldTables, shapeTable } from './report/table.mjs';
import { shapes } from './shapes.mjs';
import { runSuite } from './suite.mjs';

const folder = fileURLToPath(new URL('results/', import.meta.url));

function chosenBy(args) {
  return {
    shapes: shapes.filter(({ name, quick }) =>
      args.only ? args.only.test(name) : !args.quick || quick,
    ),
    contenders: contenders.filter(
      ({ id, label, ceiling, node = true, browser }) =>
        (args.browser ? browser : node) &&
        (id.startsWith('headwise') ||
          ceiling ||
          !args.rivals ||
          args.rivals.test(id) ||
          args.rivals.test(label)),
    ),
  };
}

async function save(report, whole) {
  mkdirSync(folder, { recursive: true });
  const write = (name, text) => {
    writeFileSync(`${folder}${name}`, text);
    console.log(`written: tests/bench/results/${name}`);
  };
  const { host } = report.about;
  write(`${host}.json`, `${JSON.stringify(report, null, 1)}\n`);
  const text = markdown(report);
  write(`${host}.md`, text);
  if (whole && host === 'node' && updateReadme(text)) console.log('updated: README.md');
  const { plot } = await import('./report/plot.mjs');
  for (const threads of new Set(report.results.map((result) => result.threads))) {
    const picture = plot(report, threads);
    if (picture) write(`${host}-${threads}.svg`, picture);
  }
}

async function main() {
  const args = readArgs(process.argv.slice(2));
  if (args.help) return console.log(help);
  const chosen = chosenBy(args);
  if (args.list) {
    console.log(
      ['shapes', ...shapes.map(({ name, quick }) => `  ${name}${quick ? '  (quick)' : ''}`)].join(
        '\n',
      ),
    );
    console.log(
      ['contenders', ...contenders.map(({ id, label }) => `  ${id}: ${label}`)].join('\n'),
    );
    return;
  }
  if (chosen.shapes.length === 0)
    throw new Error(`no shape matches ${args.only}; --list names them`);
  const earlier = args.compare && JSON.parse(readFileSync(args.compare, 'utf8'));
  const host = args.browser
    ? await import('./hosts/page.mjs')
    : await import('./hosts/process.mjs');
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  const report = {
    about: {
      date: new Date().toISOString(),
      headwise: version,
      engine: await host.describe(),
      host: host.kind,
      platform: `${platform()} ${release()} ${arch()}`,
      cpu: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`,
      rounds: args.rounds,
      quick: args.quick,
      threads: args.threads,
    },
    results: [],
    cold: undefined,
  };
  const { about } = report;
  console.log(
    `${about.engine} · ${about.cpu} · ${about.platform} · threads ${args.threads.join(', ')}\n`,
  );
  const progress = (text) => process.stderr.isTTY && process.stderr.write(`\r\x1b[K… ${text}\r`);
  const common = { host, ...chosen, threads: args.threads, progress };
  try {
    await runSuite({
      ...common,
      rounds: args.rounds,
      budgetMs: args.quick ? 60 : 250,
      slowestMs: args.quick ? 500 : 5000,
      done(result) {
        report.results.push(result);
        console.log(shapeTable(result));
      },
    });
    // A choice of shapes asks for those alone.
    if (!args.only) {
      report.cold = await runCold({ ...common, repeats: args.quick ? 1 : 5, long: !args.quick });
      console.log(coldTables(report.cold));
    }
  } finally {
    await host.stop();
  }
  if (host.kind === 'node') console.log(barsTable(report)); // they are meant for Node
  if (earlier) console.log(comparison(earlier, report));
  if (args.save) await save(report, !args.only && !args.rivals && !args.quick);
}

ensureNode();
await main();
