// Scripts: the layering rules of ARCHITECTURE.md, as data: where something may stand, and what it looks like. Pure;
// scripts/check-layers.mjs applies them.

const includes = (pattern) => new RegExp(`^\\s*#\\s*include\\s*[<"](?:${pattern})`);
const cpp = /^cpp\/.*\.(cc|h)$/;

/** Every rule: the files it looks at, those that are free of it, the forbidden line, and the rule in words. */
export const rules = [
  {
    files: cpp,
    except: /^cpp\/src\/simd\//,
    line: new RegExp(`${includes('xsimd').source}|\\bxsimd::`),
    words: 'xsimd only in cpp/src/simd',
  },
  {
    files: /^(cpp|tests\/cpp)\/.*\.(cc|h)$/,
    except: /^cpp\/bindings\//,
    line: new RegExp(
      `${includes('emscripten').source}|\\bemscripten(::|_\\w+\\()|\\bEM_(ASM|JS)\\b`,
    ),
    words: 'emscripten only in cpp/bindings',
  },
  {
    files: /^cpp\/src\/kernels\//,
    line: new RegExp(
      `${includes('thread>|mutex>|atomic>|condition_variable>|headwise/thread_pool|headwise/job|parallel/').source}|\\bthread_local\\b`,
    ),
    words: 'no threads in kernels',
  },
  {
    files: /^cpp\/src\/kernels\//,
    line: includes('attention/|cache/|gemm/|nn/|layer/|graph/|transformer/'),
    words: 'a kernel knows nothing of the drivers above it',
  },
  {
    files: /^cpp\/src\/(attention|cache|gemm|nn)\//,
    line: includes('layer/|graph/|transformer/'),
    words: 'building blocks know nothing of layer, graph and Transformer',
  },
  {
    files: /^cpp\/src\/(layer|graph)\//,
    line: includes('transformer/|headwise/transformer'),
    words: 'layer and graph know nothing of the Transformer',
  },
  {
    files:
      /^cpp\/(src\/(attention|cache|gemm|nn|layer|graph|transformer|parallel|memory)|bindings|include)\//,
    line: new RegExp(`${includes('simd/').source}|\\bsimd::|\\bMulAdd\\b`),
    words: 'no SIMD in plans and drivers',
  },
  {
    files: /^cpp\/src\/attention\/(reference|backward_reference|reference_rules)\.(cc|h)$/,
    line: includes('(?!attention/reference_rules|memory/aligned|headwise/)[a-z_]+/'),
    words: 'an oracle shares nothing with what it judges',
  },
  {
    files: /^cpp\/include\//,
    line: /^\s*#\s*include\s*"(?!headwise\/)/,
    words: 'public headers include only public headers',
  },
  {
    files: /^cpp\/(src|include)\//,
    line: new RegExp(
      `${includes('cstdio|iostream|cassert|stdio').source}|\\b(printf|abort|exit|assert)\\(|\\bthrow\\b|std::c(out|err)\\b`,
    ),
    words: 'the core neither prints nor aborts nor throws',
  },
  {
    files: /^web\/src\//,
    except: /^web\/src\/webgpu\//,
    line: /\bnavigator\.gpu\b|\.requestAdapter\(|\.createShaderModule\(/,
    words: 'WebGPU calls only in web/src/webgpu',
  },
  {
    files: /^web\/src\/onnx\//,
    line: /\bfrom '\.\.\/(?:wasm|layer|request|results|create-engine)\b/,
    words: "headwise/onnx stands on the engine's public calls",
  },
  {
    files: /^web\/(demo|examples)\/.*\.(ts|mjs|js)$/,
    line: /\b(?:from|import)\s*\(?\s*['"](?:(?:\.\.\/)+(?:src\/(?=engine|wasm|validation|index)|dist\/|web\/src)|headwise\/(?!worker|wasm\/))/,
    words: 'the demo and the examples import only the package',
  },
];

// What names a comment in each kind of file.
const commentStart = /^(?:\/\/ |# |\/\* |<!-- |r?""")/;
const skippedLines = /^(?:#!|\/\/\/ ?<|<!doctype|---$)/i;

/** Does a file's text begin with a comment like '// Kernel: what this is for'? Directives may stand before it. */
export function opensWithItsLayer(text) {
  const lines = text.split('\n');
  const first = lines.find((line) => !skippedLines.test(line) && line.trim() !== '') ?? '';
  return commentStart.test(first) && /^\W+[A-Z][^:]{0,60}: \S/.test(first);
}

/** Comments are not code: a line without what follows // in it (strings with // in them keep only their start). */
const codeOf = (line) => line.replace(/(^|\s)\/\/.*$/, '').replace(/^\s*\*.*$/, '');

/** Breaches of the rules in one file, as 'path:line: words'. */
export function breaches(name, text) {
  const found = [];
  for (const { files, except, line, words } of rules) {
    if (!files.test(name) || except?.test(name)) continue;
    text.split('\n').forEach((content, index) => {
      if (line.test(codeOf(content))) found.push(`${name}:${index + 1}: ${words}`);
    });
  }
  return found;
}
