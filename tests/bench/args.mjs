// Bench: the command line.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';

export const help = `npm run bench -- [options]

  --quick            fewer shapes, fewer and shorter rounds: a look, not a measurement
  --only PATTERN     only shapes whose name matches (a regular expression, case ignored)
  --rivals PATTERN   only contenders whose name matches; headwise and the ceilings always take part
  --threads N[,N…]   thread counts (default: 1 and all processors)
  --rounds N         rounds (default 7; with --quick 3)
  --browser          in a page in Chromium instead of Node
  --save             write the results to tests/bench/results: JSON, a Markdown table and an SVG plot
  --compare FILE     compare with the JSON of an earlier run
  --list             name shapes and contenders and end
  --help             this
`;

/** @param {string[]} argv */
export function readArgs(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      rivals: { type: 'string' },
      threads: { type: 'string' },
      rounds: { type: 'string' },
      browser: { type: 'boolean', default: false },
      save: { type: 'boolean', default: false },
      compare: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const pattern = (text) => (text === undefined ? undefined : new RegExp(text, 'i'));
  return {
    ...values,
    only: pattern(values.only),
    rivals: pattern(values.rivals),
    threads: values.threads?.split(',').map(wholeNumber('--threads')) ?? [
      ...new Set([1, availableParallelism()]),
    ],
    rounds:
      values.rounds === undefined ? (values.quick ? 3 : 7) : wholeNumber('--rounds')(values.rounds),
  };
}

const wholeNumber = (option) => (text) => {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`${option} wants whole numbers from 1, not '${text}'`);
  return number;
};
