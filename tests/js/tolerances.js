// Tests: every tolerance of the JavaScript suite, each with its reason. Loosening one is a reviewed change.
// `{ absolute, relative }`: |actual - expected| <= absolute + relative * |expected|.

/** Numbers that can be worked out by hand: a handful of float32 roundings, the exponential's included. */
export const byHand = { absolute: 1e-5, relative: 0 };

/** Other float32 implementations of the same formula (TensorFlow, PyTorch): only the order of the sums differs. */
export const otherFloat32 = { absolute: 1e-5, relative: 1e-5 };

/** The GPU likewise: its exponential and its division are off by a few units more, and sums have yet another order. */
export const onGpuFloat32 = { absolute: 1e-4, relative: 1e-5 };

/** Data rounded to float16 (11 bits): half a unit in the last place of numbers near 1 is 4.9e-4. */
export const float16Data = { absolute: 1e-3, relative: 1e-3 };

/** The two WebAssembly builds: a fused multiply-add rounds once where the other rounds twice. */
export const betweenVariants = { absolute: 1e-6, relative: 1e-6 };

/** 20,000 fair draws: 0.01 is 2.8 standard deviations (0.5 / sqrt(20,000) = 0.0035), and the seed is fixed. */
export const meanOfDraws = 0.01;

/** A cached pass against one full pass: the same float32 sums in other blocks; outputs are means of numbers near 1. */
export const cached = { absolute: 1e-6, relative: 1e-6 };

/**
 * A float16 cache against exact keys and values in -1 … 1: each is off by at most 2^-12, which moves scores of 64 products by
 * about 1e-3 and the mean of the values as much.
 */
export const cachedFloat16 = { absolute: 2e-3, relative: 0 };

/** An int8 cache likewise: each number is off by at most 1/254. */
export const cachedInt8 = { absolute: 2e-2, relative: 0 };
/** Float32 gradients beside differences in doubles over a step of 1/128: what is left of the series is below 1e-7. */
export const gradientsByDifferences = { absolute: 2e-5, relative: 2e-5 };

/**
 * Ten steps of training beside PyTorch's, each from the parameters that its own last one left: losses and norms near 3 differ by
 * 2e-6 at most, some units in the last place.
 */
export const otherTraining = { absolute: 1e-5, relative: 0 };

/** A target read token by token beside one pass over it: the same float32 sums in other blocks, through layers and norms. */
export const decoded = { absolute: 1e-5, relative: 1e-5 };
