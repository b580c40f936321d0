// Tests, browser: tolerances, each with its reason.

/** A value read off the page has three digits after the point; another build of the core may round the last one the other way. */
export const threeDigits = 0.00051 + 1e-5;

/** The GPU and the core: float32 sums in another order, over inputs of unit scale. */
export const acrossBackends = 1e-4;
