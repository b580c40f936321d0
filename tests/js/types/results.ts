// Tests: what a call's options ask for is there in the type of its result, and what they may not ask for is not. Only compiled, with
// --strict, by ../types.test.js.
import type {
  AttendOptions,
  AttentionOptions,
  AttentionResult,
  Engine,
  ForwardOptions,
  GpuTensor,
  KVCache,
  MultiHeadAttention,
  ResidentAttentionResult,
  Tensor,
} from 'headwise';

declare const engine: Engine;
declare const mha: MultiHeadAttention;
declare const cache: KVCache;
declare const x: Tensor;
declare const sometimes: boolean;

/** `is<A>()(value)` compiles where the value's type is just A. */
function is<A>() {
  return <B>(
    _value: B,
    ..._wrong: Same<A, B> extends true ? [] : ['the type is another']
  ): void => {};
}
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

export async function use(): Promise<void> {
  const weighted = await engine.attention(x, x, x, { returnWeights: true });
  is<Tensor>()(weighted.weights);
  is<Tensor | undefined>()(weighted.scores);
  const heads = engine.attentionSync(x, x, x, { returnWeights: { heads: [0, 2] } });
  is<Tensor>()(heads.weights);
  const scored = engine.attentionSync(x, x, x, { returnScores: 'raw', returnLogSumExp: true });
  is<Tensor>()(scored.scores);
  is<Tensor>()(scored.logSumExp);
  is<Tensor | undefined>()(scored.weights);

  const onDevice = await engine.attention(x, x, x, { resident: true, returnLogSumExp: true });
  is<GpuTensor>()(onDevice.output);
  is<GpuTensor>()(onDevice.logSumExp);
  is<GpuTensor | undefined>()(onDevice.weights);

  const averaged = await mha.forward(x, undefined, undefined, { averageWeights: true });
  is<Tensor>()(averaged.weights);
  const atOnce = mha.forwardSync(x, x, x, { returnWeights: true, returnScores: 'masked' });
  is<Tensor>()(atOnce.weights);
  is<Tensor>()(atOnce.scores);
  const step = await cache.attend(x, x, x, { returnWeights: true });
  is<Tensor>()(step.weights);
  is<Tensor>()(cache.attendSync(x, x, x, { returnLogSumExp: true }).logSumExp);

  // What is not sure is optional.
  const unsure = [
    await engine.attention(x, x, x),
    await engine.attention(x, x, x, {}),
    await engine.attention(x, x, x, { returnWeights: false }),
    await engine.attention(x, x, x, { returnWeights: sometimes }),
    await engine.attention(x, x, x, { returnWeights: sometimes ? true : undefined }),
    await engine.attention(x, x, x, sometimes ? { returnWeights: true } : {}),
    await engine.attention(x, x, x, sometimes ? { returnWeights: true } : undefined),
    await mha.forward(x),
    await cache.attend(x, x, x),
  ] as const;
  unsure.forEach(({ weights }) => is<Tensor | undefined>()(weights));
  // @ts-expect-error -- whether there are weights is not known
  void unsure[4].weights.data;
  // @ts-expect-error -- nor here
  void unsure[5].weights.data;
  const wide: AttentionOptions = { returnWeights: true };
  const any: AttentionResult = await engine.attention(x, x, x, wide);
  const resident: ResidentAttentionResult = onDevice;

  // Options that are kept apart, and each kind of value.
  const forward: ForwardOptions = { mask: [[true]] };
  const attend: AttendOptions = { scale: 2 };
  await mha.forward(x, x, x, forward);
  await cache.attend(x, x, x, attend);
  await engine.attention(x, x, x, { layout: 'blhd', window: [2, Infinity], bias: [[0, -1]] });
  await engine.attention(x, x, x, { causalOffset: [1n, 2n], dropout: { rate: 0.1, seed: 1 } });

  // @ts-expect-error -- no such option
  await engine.attention(x, x, x, { casual: true });
  // @ts-expect-error -- none of the layer's
  await engine.attention(x, x, x, { averageWeights: true });
  // @ts-expect-error -- no such stage
  await engine.attention(x, x, x, { returnScores: 'last' });
  // @ts-expect-error -- a cache has its own lengths
  await cache.attend(x, x, x, { kvLengths: [1] });
  // @ts-expect-error -- no such option
  await mha.forward(x, x, x, { returnWeights: true, casual: true });
  void [any, resident];
}
