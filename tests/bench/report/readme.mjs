// Bench: puts the Markdown between README.md's two bench marks. Only a whole run's: a choice of shapes would drop rows.
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../../../README.md', import.meta.url);
const marks = /(<!-- bench -->)[\s\S]*(<!-- \/bench -->)/;

/** @returns {boolean} false when README.md has no marks */
export function updateReadme(text) {
  const readme = readFileSync(file, 'utf8');
  if (!marks.test(readme)) return false;
  writeFileSync(
    file,
    readme.replace(marks, (_, start, end) => `${start}\n\n${text.trim()}\n\n${end}`),
  );
  return true;
}
