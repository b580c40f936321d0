// Tests: runs a script in a process of its own, for what would spoil this one (stubs, counting, other runtimes).

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs `command` with `args` in `cwd` (the checkout, where 'headwise' is the built package) and feeds it `input`.
 * Resolves to { status, stdout, stderr }; a process that has not ended after `timeout` ms is killed and has status null.
 */
export function runProcess(command, args, { cwd = root, input = '', timeout = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env };
    delete env.NODE_OPTIONS; // Jest's own flags are not the child's
    const child = spawn(command, args, { cwd, env, timeout, killSignal: 'SIGKILL' });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => (stdout += chunk));
    child.stderr.on('data', (chunk) => (stderr += chunk));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
    child.stdin.on('error', () => {}); // the process may end without reading
    child.stdin.end(input);
  });
}

/** Runs a module's text in Node; resolves to the JSON of its last line of output. Anything but a clean end throws. */
export async function runModule(text, options) {
  const { status, stdout, stderr } = await runProcess(process.execPath, ['--input-type=module'], {
    ...options,
    input: text,
  });
  if (status !== 0) throw new Error(`the script ended with ${status}\n${stdout}\n${stderr}`);
  return { ...JSON.parse(stdout.trim().split('\n').at(-1)), stderr };
}
