// Tests, bundlers: the package as npm packs it, installed in projects of their own outside the checkout.

import { spawn } from 'node:child_process';
import { cp, mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const page = fileURLToPath(new URL('../page', import.meta.url));

const builder = (name) => fileURLToPath(new URL(`../builders/${name}.mjs`, import.meta.url));

function start(command, args, cwd) {
  const env = { ...process.env };
  delete env.NODE_OPTIONS; // Jest's own flags are not the child's
  delete env.NODE_ENV; // nor is Jest's 'test'
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { out: '', err: '' };
  child.stdout.on('data', (chunk) => (said.out += chunk));
  child.stderr.on('data', (chunk) => (said.err += chunk));
  const closed = new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  return { child, said, closed };
}

async function run(command, args, cwd) {
  const { said, closed } = start(command, args, cwd);
  const status = await closed;
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${status}\n${said.out}${said.err}`);
  return said;
}

/** Packs the package. Resolves to { project, remove }: `project(name)` makes a folder with the page and the package installed. */
export async function pack() {
  const folder = await mkdtemp(join(tmpdir(), 'headwise-bundlers-'));
  const { out } = await run('npm', ['pack', '--json', '--pack-destination', folder], root);
  const [{ filename }] = JSON.parse(out);
  const install = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund'];
  return {
    async project(name) {
      const project = join(folder, name);
      await mkdir(project);
      await cp(page, project, { recursive: true });
      await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
      await run('npm', [...install, join(folder, filename)], project);
      return project;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/**
 * Runs builders/<name>.mjs in a project, to its end. It has nothing to complain about, warnings included, or this rejects. The
 * result lies in `out`, with the page beside it where the bundler makes none.
 */
export async function build(name, project, { ownPage = false } = {}) {
  const { err } = await run(process.execPath, [builder(name), 'build'], project);
  if (err !== '') throw new Error(`${name} says:\n${err}`);
  const out = join(project, 'out');
  if (!ownPage) await cp(join(page, 'index.html'), join(out, 'index.html'));
  return out;
}

/** Starts Vite's server: 'dev' or 'preview', isolated or not. Resolves to { url, close }. */
export async function startVite(command, project, isolated) {
  const args = [builder('vite'), command, isolated ? 'isolated' : 'open'];
  const { child, said, closed } = start(process.execPath, args, project);
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', () => {
      if (said.out.includes('\n')) resolve(said.out.trim().replace(/\/$/u, ''));
    });
    closed.then((status) => reject(new Error(`Vite ended with ${status}\n${said.err}`)), reject);
  });
  return {
    url,
    close: () => {
      child.kill();
      return closed;
    },
  };
}
