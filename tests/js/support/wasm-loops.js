// Tests: the innermost loops of a WebAssembly binary, each with how often it holds every instruction and how many values it
// loads ahead of their use. What a kernel's loop costs can be read there, whatever machine the test runs on.
import { readFileSync } from 'node:fs';
import wabt from 'wabt';

const features = {
  simd: true,
  threads: true,
  relaxed_simd: true,
  bulk_memory: true,
  exceptions: true,
  reference_types: true,
  sign_extension: true,
  mutable_globals: true,
  sat_float_to_int: true,
  multi_value: true,
  tail_call: true,
  extended_const: true,
};

const isLocal = (op) => op.startsWith('local.');
const isLoad = (op) => op.startsWith('v128.load');
const isArithmetic = (op) => op.startsWith('f32x4.') && !op.endsWith('splat');

/**
 * A loop without loops inside: `counts[op]`; `size`, its instructions without moves between locals (registers); `ahead`, the
 * most vectors that are loaded one after the other before any is computed with.
 */
export async function innermostLoops(path) {
  const module = (await wabt()).readWasm(readFileSync(path), features);
  const text = module.toText({ foldExprs: false, inlineExport: false });
  module.destroy();
  const loops = [];
  const open = []; // blocks that have not ended
  for (const line of text.split('\n')) {
    const [op] = line.trim().split(' ', 1);
    if (op === '(func') {
      open.length = 0;
    } else if (op === 'loop' || op === 'block' || op === 'if') {
      open.push({ op, counts: {}, innermost: true, run: 0, ahead: 0 });
    } else if (op === 'end') {
      close(open, loops);
    } else if (open.length > 0) {
      const block = open.at(-1);
      block.counts[op] = (block.counts[op] ?? 0) + 1;
      if (isLoad(op)) block.ahead = Math.max(block.ahead, ++block.run);
      else if (isArithmetic(op)) block.run = 0;
    }
  }
  return loops;
}

function close(open, loops) {
  const block = open.pop();
  if (block === undefined) return;
  if (block.op === 'loop') {
    for (const outer of open) outer.innermost = false;
    if (!block.innermost) return;
    const size = Object.entries(block.counts).reduce(
      (n, [op, count]) => (isLocal(op) ? n : n + count),
      0,
    );
    loops.push({ counts: block.counts, size, ahead: block.ahead });
  } else if (open.length > 0) {
    // What a block inside a loop holds belongs to the loop.
    const { counts } = open.at(-1);
    for (const [op, count] of Object.entries(block.counts)) counts[op] = (counts[op] ?? 0) + count;
  }
}
