// Wasm: what is known of how JavaScript engines compile long loops. A measurement at start-up would only see their baseline
// compilers: the optimizing ones take over after some milliseconds of work.

interface Globals {
  process?: { versions?: { v8?: string; bun?: string } };
  navigator?: { userAgent?: string };
}

/** The first V8 whose optimizing compiler for WebAssembly leaves instructions in their order (Turboshaft). */
const firstOrderedV8 = 13;

/**
 * Whether the products should take few rows and one step a turn. V8 before 13 loads all of a turn's operands first and then
 * spills them, JavaScriptCore spills too; long turns take 1.6 to 2.6 times as long there. V8 13 and SpiderMonkey gain by them.
 */
export function wantsShortTurns(globals: Globals = globalThis as Globals): boolean {
  const { process, navigator } = globals;
  // Bun names a V8 it is compatible with.
  if (process?.versions?.bun !== undefined) return true;
  const v8 = process?.versions?.v8;
  if (v8 !== undefined) return Number.parseInt(v8, 10) < firstOrderedV8;
  const agent = navigator?.userAgent ?? '';
  // Chrome 130 has V8 13.0.
  const chrome = /Chrom(?:e|ium)\/(\d+)/u.exec(agent)?.[1];
  if (chrome !== undefined) return Number(chrome) < 10 * firstOrderedV8;
  return agent.includes('AppleWebKit');
}
