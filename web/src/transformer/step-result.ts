// Transformer: what the core tells of a training step, or of a part of one.

export interface StepResult {
  loss: number;
  counted: number;
  correct: number;
  gradientNorm: number;
  /** Where it went wrong, if it did. */
  module: string | undefined;
}

/** From the core's `result`: numbers, then the letters of a module's name. */
export function readStepResult(result: Float32Array): StepResult {
  const [loss, counted, correct, gradientNorm, applied] = result as unknown as [
    number,
    number,
    number,
    number,
    number,
  ];
  const letters = result.subarray(5, result.indexOf(0, 5));
  return {
    loss,
    counted,
    correct,
    gradientNorm,
    module: applied === 0 ? String.fromCharCode(...letters) : undefined,
  };
}
