// Bench: an error that came from a contender's process or page, with its kind.
import { NotApplicable } from '../contenders/not-applicable.mjs';

/** @param {{ name?: string, message: string }} error */
export function failureOf({ name, message }) {
  // Without folders: those of the machine where a rival was built, or of this one, say nothing.
  const firstLine = message
    .trim()
    .split('\n')[0]
    .replace(/(?<![\w:])\/[^\s:'"]*\/([^\s:'"/]+)/g, '$1');
  if (name === 'NotApplicable') return new NotApplicable(firstLine);
  return new Error(firstLine.slice(0, 300));
}
