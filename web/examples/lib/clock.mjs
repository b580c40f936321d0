// Example logic: how long each call into the core took, its trip to a worker included.

/** @typedef {{ name: string, milliseconds: number }} Timing */

/** Measures promises under a name, in the order in which they were asked for. */
export class Clock {
  /** @type {Timing[]} */
  timings = [];

  /**
   * @template T
   * @param {string} name
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async time(name, work) {
    const start = performance.now();
    const result = await work();
    this.timings.push({ name, milliseconds: performance.now() - start });
    return result;
  }
}
