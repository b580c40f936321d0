// Scripts: one at a time. Two builds at once in one folder (npm start in one terminal, npm test in another) would spoil
// Ninja's log of what it has built, and make it build everything again.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { note } from './log.mjs';
import { stamps } from './places.mjs';

const isAlive = (pid) => {
  try {
    process.kill(pid, 0); // signal 0 only asks
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
};

function take(file) {
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const owner = Number(readFileSync(file, 'utf8'));
  if (owner && !isAlive(owner)) rmSync(file, { force: true }); // it ended without leaving; the next try takes it
  return false;
}

/** Runs `work` while no other process of this checkout runs work under the same name. */
export async function withLock(name, work) {
  mkdirSync(stamps, { recursive: true });
  const file = join(stamps, `${name}.lock`);
  for (let tries = 0; !take(file); tries++) {
    if (tries === 2) note(`waiting for another process that is at ${name}`);
    await sleep(250);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}
