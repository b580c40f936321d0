// Bench: an error that came from a contender's process or page, with its kind.
import { NotApplicable } from '../contenders/not-applicable.mjs';

/** @param {{ name?: string, message: string }} error */
export function failureOf({ name, message }) {
  const [firstLine] = message.trim().split('\n');
  if (name === 'NotApplicable') return new NotApplicable(firstLine);
  return new Error(firstLine.slice(0, 300));
}
