// Example logic: matrices and headings as calm text, for the scripts.

/**
 * Columns that a terminal gives a text: CJK and emoji take two, combining letters none.
 * @param {string} text
 */
function columnsOf(text) {
  let columns = 0;
  for (const letter of text) {
    if (/\p{Mark}|\u200d|\ufe0f/u.test(letter)) continue;
    columns +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|\p{Extended_Pictographic}/u.test(
        letter,
      )
        ? 2
        : 1;
  }
  return columns;
}

/** @param {string} text @param {number} columns */
const padRight = (text, columns) => text + ' '.repeat(Math.max(0, columns - columnsOf(text)));
/** @param {string} text @param {number} columns */
const padLeft = (text, columns) => ' '.repeat(Math.max(0, columns - columnsOf(text))) + text;

/** @param {string} title */
export function heading(title) {
  console.log(`\n${title}\n${'─'.repeat(columnsOf(title))}`);
}

/** @param {string} text */
export function say(text) {
  console.log(text);
}

/** @param {readonly number[]} shape */
export function shapeText(shape) {
  return `(${shape.join(', ')})`;
}

/** @param {number} share 0 to 1 */
export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** @param {number} value */
function number(value) {
  if (value === -Infinity) return 'hidden';
  return value.toFixed(3).replace('-0.000', '0.000');
}

/**
 * Prints a matrix with its labels.
 * @param {string} title
 * @param {ArrayLike<number>} values row-major
 * @param {readonly string[]} rowLabels
 * @param {readonly string[]} [columnLabels]
 */
export function matrix(title, values, rowLabels, columnLabels) {
  const columns = values.length / Math.max(1, rowLabels.length);
  const left = Math.max(...rowLabels.map(columnsOf), 0) + 2;
  const width = Math.max(8, ...(columnLabels ?? []).map((label) => columnsOf(label) + 2));
  console.log(`\n${title}`);
  if (columnLabels) {
    console.log(' '.repeat(left) + columnLabels.map((label) => padLeft(label, width)).join(''));
  }
  rowLabels.forEach((label, row) => {
    const cells = [];
    for (let column = 0; column < columns; column++) {
      cells.push(padLeft(number(values[row * columns + column]), width));
    }
    console.log(padRight(label, left) + cells.join(''));
  });
}

/**
 * One line about what computes, so that a slow run explains itself.
 * @param {import('headwise').Engine} engine
 */
export function engineLine(engine) {
  const { version, backend, variant, threads, threadsReason } = engine.info;
  const reason = threadsReason ? ` (${threadsReason})` : '';
  console.log(`headwise ${version}, ${backend}, ${variant}, threads: ${threads}${reason}`);
}
