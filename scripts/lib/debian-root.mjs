// Scripts: a Debian system in a folder of the cache that holds the C++ and Emscripten toolchain, and how to work in it.
// Made by mmdebstrap in about a minute (1 GB); entered by chroot with the checkout bind-mounted at its own path.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Failure, note, seconds, step } from './log.mjs';
import { cache, root } from './places.mjs';
import { ask, has, run } from './run.mjs';

// The first Debian release whose Emscripten is new enough. Raise `recipe` with any change below: the cache is named after it.
const suite = 'forky';
const recipe = 1;
const packages =
  'emscripten,libxsimd-dev,cmake,ninja-build,g++,libgtest-dev,clang-tidy,clang-format,python3'.split(
    ',',
  );

const folder = join(cache, `toolchain-${suite}-${recipe}`);
const stamp = join(folder, 'headwise-toolchain');

const isRoot = process.getuid?.() === 0;

/** Runs a program as the superuser: as it is, or through sudo (which may ask for a password on a terminal). */
export function asRoot(command, args) {
  if (isRoot) return [command, args];
  return ['sudo', [...(process.stdin.isTTY ? [] : ['-n']), command, ...args]];
}

function obstacleToBeingRoot() {
  if (isRoot) return null;
  if (!has('sudo')) return 'it needs root, or sudo';
  if (!process.stdin.isTTY && ask('sudo', ['-n', 'true']) === null)
    return 'it needs root, and sudo asks for a password';
  return null;
}

/** Why no Debian root can be made or entered here; null when nothing stands in the way. */
export function obstacle() {
  if (process.platform !== 'linux') return 'it needs Linux';
  if (!existsSync(folder) && !has('mmdebstrap') && !has('apt-get'))
    return 'it needs mmdebstrap, or apt-get to install it';
  return obstacleToBeingRoot();
}

/** Why no package can be installed on this machine; null when nothing stands in the way. */
export function obstacleToInstalling() {
  return has('apt-get') ? obstacleToBeingRoot() : 'there is no apt-get';
}

/** Installs Debian or Ubuntu packages on this machine. */
export async function aptInstall(names) {
  if (!has('apt-get')) throw new Failure(`please install ${names.join(', ')}`);
  step(`installing ${names.join(', ')} with apt-get`);
  const quiet = { echo: 'progress', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  await run(...asRoot('apt-get', ['update', '-q']), { ...quiet, allowFailure: true });
  await run(
    ...asRoot('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...names]),
    quiet,
  );
}

/** The Debian mirror that this machine's apt uses, as a deb line; null on other systems (mmdebstrap then knows one). */
export function debLine(indexTargets, suiteName = suite) {
  for (const line of indexTargets.split('\n')) {
    const [uri, origin, label, signedBy] = line.split('|');
    if (origin !== 'Debian' || label !== 'Debian' || !uri) continue;
    const keyring = signedBy?.startsWith('/')
      ? signedBy.split(/[ ,]/)[0]
      : '/usr/share/keyrings/debian-archive-keyring.gpg';
    return `deb [signed-by=${keyring}] ${uri} ${suiteName} main`;
  }
  return null;
}

/** This machine's own apt settings that decide whether and through what a mirror is reached, as options for mmdebstrap. */
export function aptOptions(dump) {
  return dump
    .split('\n')
    .filter((line) =>
      /^Acquire::(Check-Valid-Until|Check-Date|https?::Proxy|https?::CAInfo)\b/i.test(line),
    )
    .map((line) => `--aptopt=${line.replace(/;$/, '')}`);
}

async function make() {
  const needed = [
    ['mmdebstrap', 'mmdebstrap'],
    ['debian-archive-keyring', '/usr/share/keyrings/debian-archive-keyring.gpg'],
  ].filter(([, sign]) => (sign.startsWith('/') ? !existsSync(sign) : !has(sign)));
  if (needed.length > 0) await aptInstall(needed.map(([name]) => name));

  step('making the C++ and Emscripten toolchain (once; about 1 GB, a minute or two)');
  const start = performance.now();
  mkdirSync(cache, { recursive: true });
  const targets =
    ask('apt-get', [
      'indextargets',
      '--format',
      '$(REPO_URI)|$(ORIGIN)|$(LABEL)|$(SIGNED_BY)',
      'Created-By: Packages',
    ]) ?? '';
  const mirror = process.env.HEADWISE_DEBIAN_MIRROR
    ? `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${process.env.HEADWISE_DEBIAN_MIRROR} ${suite} main`
    : debLine(targets);
  // Unpacked beside its place and moved there when whole: an interrupted attempt is never taken for a toolchain.
  const unfinished = `${folder}.${process.pid}`;
  const env = { ...process.env };
  delete env.NODE_EXTRA_CA_CERTS; // names a file that does not exist inside; node says so at every start
  const args = [
    '--variant=apt',
    ...aptOptions(ask('apt-config', ['dump']) ?? ''),
    `--include=${packages.join(',')}`,
  ];
  const result = await run(
    ...asRoot('mmdebstrap', [...args, suite, unfinished, ...(mirror ? [mirror] : [])]),
    {
      env,
      echo: 'progress',
      allowFailure: true,
    },
  );
  if (result.code !== 0) {
    await run(...asRoot('rm', ['-rf', '--one-file-system', unfinished]), { allowFailure: true });
    throw new Failure(
      `mmdebstrap could not make the toolchain:\n${result.output.split('\n').slice(-25).join('\n')}\n` +
        'Set HEADWISE_DEBIAN_MIRROR to a Debian mirror that this machine reaches, or install emsdk (see README.md).',
    );
  }
  // Emscripten compiles its system libraries at first use; every user may write to their folder.
  await run(...asRoot('mkdir', ['-p', '-m', '777', join(unfinished, 'var/cache/emscripten')]));
  if (!isRoot) await run(...asRoot('chown', [`${process.getuid()}`, unfinished]));
  writeFileSync(join(unfinished, 'headwise-toolchain'), `${suite} ${recipe}\n`);
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(stamp)) throw error;
    await run(...asRoot('rm', ['-rf', '--one-file-system', unfinished])); // another process was faster
  }
  note(`made in ${seconds(start)}: ${folder}`);
}

// $1 the root, $2 the checkout, then the command. The mounts live in a namespace of their own and end with it.
const enterByMount = `
R=$1; W=$2; shift 2
mkdir -p "$R$W" && mount --bind "$W" "$R$W" && mount --bind /dev "$R/dev" || exit 125
mount -t proc proc "$R/proc" 2>/dev/null || mount --bind /proc "$R/proc" || exit 125
exec "$@"`;

// For machines that permit no mounts: copies in what the toolchain reads, and copies out what it makes for the package.
const enterByCopy = `
R=$1; W=$2; shift 2
mkdir -p "$R$W/tests" && cd "$W" || exit 125
cp -a --update cpp cmake CMakeLists.txt CMakePresets.json .clang-format .clang-tidy "$R$W/" || exit 125
for d in cpp fixtures; do [ ! -d tests/$d ] || cp -a --update tests/$d "$R$W/tests/" || exit 125; done
"$@"; code=$?
[ ! -d "$R$W/dist/wasm" ] || { mkdir -p dist && cp -a --update "$R$W/dist/wasm" dist/; }
exit $code`;

/** The command that runs `command` inside, in `cwd` (the checkout or below it). */
function inside(command, args, { cwd = root, env = {}, mounts }) {
  const kept = ['TERM', 'CI']
    .filter((name) => name in process.env)
    .map((name) => `${name}=${process.env[name]}`);
  const given = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const user = isRoot ? [] : [`--userspec=${process.getuid()}:${process.getgid()}`];
  const environment = [
    `HOME=${isRoot ? '/root' : '/tmp'}`,
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    'LANG=C.UTF-8',
  ];
  const entered = [
    'chroot',
    ...user,
    folder,
    '/usr/bin/env',
    '-i',
    ...environment,
    ...kept,
    ...given,
  ];
  const there = ['/bin/sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', cwd, command, ...args];
  const shell = [
    'sh',
    '-c',
    mounts ? enterByMount : enterByCopy,
    'sh',
    folder,
    root,
    ...entered,
    ...there,
  ];
  return mounts ? asRoot('unshare', ['--mount', ...shell]) : asRoot(shell[0], shell.slice(1));
}

/** The toolchain in the cache, made when it is not there. */
export async function debianRoot() {
  if (!existsSync(stamp)) await make();
  const mounts =
    ask(...asRoot('unshare', ['--mount', 'sh', '-c', 'mount --bind /tmp /mnt'])) !== null;
  return {
    kind: 'root',
    folder,
    stamp: readFileSync(stamp, 'utf8').trim(),
    run: (command, args, options = {}) => {
      const { cwd, env, ...rest } = options;
      return run(...inside(command, args, { cwd, env, mounts }), {
        shown: [command, ...args].join(' '),
        ...rest,
      });
    },
  };
}
