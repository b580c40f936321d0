// Bench: the package's gradients, as a user calls them: those of attention, and a model's training step.
import { createEngine } from '../../../dist/index.js';
import { learningRate, startValues, trainingBatch } from '../training-inputs.mjs';

/** Attention's backward pass; the forward pass is done before. */
export async function backwardCall(engine, { H, L, S, D }, inputs) {
  const q = { data: inputs.q, shape: [1, H, L, D] };
  const [k, v] = [inputs.k, inputs.v].map((data) => ({ data, shape: [1, H, S, D] }));
  const dOutput = { data: inputs.dOutput, shape: [1, H, L, D] };
  const { output, logSumExp } = await engine.attention(q, k, v, { returnLogSumExp: true });
  return async () => {
    const { dq, dk, dv } = await engine.attentionBackward(dOutput, q, k, v, output, logSumExp);
    const read = () => ({ data: Float32Array.from([dq, dk, dv].flatMap(({ data }) => [...data])) });
    return Object.defineProperty({}, 'output', { get: read });
  };
}

/**
 * A training step, on an engine of its own, so that its peak of memory is this model's. Two steps' losses are the output: the
 * second one's tells whether the first one's gradients were right.
 */
export async function trainingCall(options, shape) {
  const engine = await createEngine(options);
  const model = engine.transformer(shape.config);
  const weights = await model.getWeights();
  for (const [name, tensor] of Object.entries(weights))
    tensor.data.set(startValues(name, tensor.shape));
  await model.setWeights(weights);
  const batch = trainingBatch(shape);
  const losses = [];
  const run = async () => {
    const { loss } = await model.trainStep(batch, { optimizer: 'adam', learningRate });
    if (losses.length < 2) losses.push(loss);
    return { output: { data: Float32Array.from(losses) } };
  };
  await run();
  return { run, memory: () => engine.memory(), dispose: () => engine.dispose() };
}
