// Scripts: starts programs. No shell in between; a child gets no standard input.
import { spawn, spawnSync } from 'node:child_process';

import { Failure, note } from './log.mjs';

/**
 * Runs a program to its end.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: object, echo?: boolean | 'stderr' | 'progress', allowFailure?: boolean, shown?: string }} [options]
 *   echo: pass its output, or its standard error alone, on while it runs (default true); 'progress': its last line, now
 *   and then; allowFailure: return instead of throwing; shown: how to name the command in an error.
 * @returns {Promise<{ code: number, output: string }>} exit code, and both streams as they came
 */
export function run(command, args, options = {}) {
  const {
    cwd,
    env,
    echo = true,
    allowFailure = false,
    shown = [command, ...args].join(' '),
  } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const ticking = echo === 'progress' ? reportProgress(() => output) : undefined;
    const take = (stream) => (chunk) => {
      output += chunk;
      if (echo === true || (echo === 'stderr' && stream === process.stderr)) stream.write(chunk);
    };
    child.stdout.setEncoding('utf8').on('data', take(process.stdout));
    child.stderr.setEncoding('utf8').on('data', take(process.stderr));
    child.on('error', (error) => {
      if (allowFailure) resolve({ code: 127, output: String(error) });
      else reject(new Failure(`cannot start ${command}: ${error.message}`));
    });
    child.on('close', (code, signal) => {
      clearInterval(ticking);
      const result = { code: code ?? 128, output };
      if (result.code === 0 || allowFailure) return resolve(result);
      if (!echo || echo === 'progress') process.stderr.write(output);
      reject(new Failure(`${shown} ended with ${signal ?? `code ${code}`}`));
    });
  });
}

// Long silent work reports from time to time that it still runs.
function reportProgress(outputSoFar) {
  const start = performance.now();
  return setInterval(() => {
    const last = outputSoFar().trimEnd().split('\n').at(-1).slice(0, 100);
    note(`${Math.round((performance.now() - start) / 1000)} s … ${last}`);
  }, 15_000);
}

/** What a short program prints, trimmed; null when it is not there or fails. */
export function ask(command, args, options = {}) {
  const result = spawnSync(command, args, {
    encoding: 'utf8',
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return result.status === 0 ? result.stdout.trim() : null;
}

/** Is there a program of this name on the PATH? */
export function has(command) {
  return ask('sh', ['-c', 'command -v "$1"', 'sh', command]) !== null;
}
