// Example logic: what the three examples are measured by.

/**
 * The share of answers that equal the wanted ones, token for token.
 * @param {readonly (readonly (string | number)[])[]} answers
 * @param {readonly (readonly (string | number)[])[]} wanted
 * @returns {number} 0 to 1; 1 when nothing is asked
 */
export function exactMatch(answers, wanted) {
  if (answers.length !== wanted.length) {
    throw new RangeError(`${answers.length} answers for ${wanted.length} questions`);
  }
  if (wanted.length === 0) return 1;
  const same = answers.filter(
    (answer, i) =>
      answer.length === wanted[i].length && answer.every((token, j) => token === wanted[i][j]),
  );
  return same.length / wanted.length;
}

/** @param {number} meanLoss natural logarithms a token @returns {number} */
export const perplexityOf = (meanLoss) => Math.exp(meanLoss);

/** Counts over all scenes, then intersection over union for each class: small scenes weigh by their size. */
export class IntersectionOverUnion {
  #classes;
  #both;
  #predicted;
  #true;

  /** @param {number} classes */
  constructor(classes) {
    this.#classes = classes;
    this.#both = new Float64Array(classes);
    this.#predicted = new Float64Array(classes);
    this.#true = new Float64Array(classes);
  }

  /** @param {ArrayLike<number>} predicted a class for each place @param {ArrayLike<number>} truth */
  add(predicted, truth) {
    if (predicted.length !== truth.length) {
      throw new RangeError(`${predicted.length} predictions for ${truth.length} places`);
    }
    for (let i = 0; i < truth.length; i++) {
      this.#predicted[predicted[i]]++;
      this.#true[truth[i]]++;
      if (predicted[i] === truth[i]) this.#both[truth[i]]++;
    }
  }

  /** @returns {number[]} for each class; NaN where it occurs neither in predictions nor in truth */
  perClass() {
    return Array.from({ length: this.#classes }, (_, c) => {
      const union = this.#predicted[c] + this.#true[c] - this.#both[c];
      return union === 0 ? NaN : this.#both[c] / union;
    });
  }

  /** @returns {number} over the classes that occur; 1 when none does */
  mean() {
    const values = this.perClass().filter((value) => !Number.isNaN(value));
    return values.length === 0 ? 1 : values.reduce((sum, value) => sum + value, 0) / values.length;
  }
}
