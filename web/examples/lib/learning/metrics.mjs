// Example logic: what the three examples are measured by.

/**
 * How many sequences are right in every place that counts.
 * @param {ArrayLike<number>} said the class said in each place, [B · length]
 * @param {ArrayLike<number>} labels the class wanted there; −1: does not count
 * @param {number} length
 */
export function exactMatches(said, labels, length) {
  if (said.length !== labels.length) {
    throw new RangeError(`${said.length} answers for ${labels.length} questions`);
  }
  let right = 0;
  for (let start = 0; start < labels.length; start += length) {
    let same = true;
    for (let i = start; i < start + length; i++) same &&= labels[i] === -1 || labels[i] === said[i];
    right += Number(same);
  }
  return right;
}

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
