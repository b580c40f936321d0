// Scripts: progress in plain lines, and the one way in which a script fails.

/** What the user can act upon; printed without a stack. */
export class Failure extends Error {}

export function step(text) {
  process.stdout.write(`• ${text}\n`);
}

export function note(text) {
  process.stdout.write(`  ${text}\n`);
}

/** Seconds since `start` (of performance.now()), for a progress line. */
export function seconds(start) {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

/** Runs a script's main function; a Failure ends the process with code 1 and its message alone. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(
      error instanceof Failure ? `\n✗ ${error.message}\n` : `\n✗ ${error.stack}\n`,
    );
  }
}
