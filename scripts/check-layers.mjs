// Scripts: holds the house rules that no compiler holds: who may use what (lib/layers.mjs), a first line that says what a
// file is for, and no file of more than 500 lines.
import { breaches, opensWithItsLayer } from './lib/layers.mjs';
import { Failure, main, note, step } from './lib/log.mjs';
import { sourceFiles, textOf } from './lib/sources.mjs';

const longest = 500;
const source = /\.(cc|h|ts|mts|js|mjs|css|html|py|cmake)$|(^|\/)CMakeLists\.txt$/;
const notWritten = /^tests\/fixtures\//;

await main(async () => {
  step('layers, first lines, lengths');
  const found = [];
  const names = (await sourceFiles()).filter((name) => source.test(name) && !notWritten.test(name));
  for (const name of names) {
    const text = textOf(name);
    found.push(...breaches(name, text));
    const length = text.split('\n').length - 1;
    if (length > longest) found.push(`${name}: ${length} lines, more than ${longest}: split it`);
    if (!name.endsWith('.html') && !opensWithItsLayer(text)) {
      found.push(
        `${name}: its first line does not say which layer it is and what for ('// Layer: purpose')`,
      );
    }
  }
  if (found.length > 0) throw new Failure(found.join('\n'));
  note(`${names.length} files`);
});
