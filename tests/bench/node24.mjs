// Bench: runs this bench with Node 24 from npm, whatever Node it was started with, so that runs on different machines
// measure the same JavaScript engine.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const wanted = '24';
const marker = 'HEADWISE_BENCH_NODE';

/** Returns when this is the right process; otherwise runs the right one to its end and exits with its code. */
export function ensureNode() {
  if (process.versions.node.split('.')[0] === wanted || process.env[marker]) return;
  const name = `node-${process.platform}-${process.arch}`;
  const path = fileURLToPath(new URL(`node_modules/${name}/bin/node`, import.meta.url));
  if (!existsSync(path)) {
    process.stderr.write(
      `No ${name}@${wanted} in tests/bench/node_modules: measuring with Node ${process.versions.node}.\n`,
    );
    return;
  }
  const { status, error } = spawnSync(path, process.argv.slice(1), {
    stdio: 'inherit',
    env: { ...process.env, [marker]: '1' },
  });
  if (error) throw error;
  process.exit(status ?? 1);
}
