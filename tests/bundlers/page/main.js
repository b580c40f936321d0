// Tests, bundlers: a user's page. The test calls `check` and reads what comes back.
import { createEngine, tensor } from 'headwise';
import { attention } from 'headwise/onnx';

/** Inputs [2,4,50,16], enough for several tasks, the same everywhere. */
const many = [1, 2, 3].map((step) =>
  tensor(
    Float32Array.from({ length: 2 * 4 * 50 * 16 }, (_, i) => ((i * step * 37) % 101) / 50 - 1),
    [2, 4, 50, 16],
  ),
);

/**
 * An engine with these options computes weights 1 : 2 : 3 over the values 6, 12, 18 (the answer is 14), and attention over
 * `many`. Resolves to { value, onnx, many, info }; `onnx` is the value again, by the sub-path.
 */
globalThis.check = async (options) => {
  const engine = await createEngine(options);
  try {
    const k = tensor([0, Math.log(2), Math.log(3)], [3, 1]);
    const v = tensor([6, 12, 18], [3, 1]);
    const { output } = await engine.attention(tensor([1], [1, 1]), k, v, { scale: 1 });
    const four = ({ data, shape }) => ({ data, dims: [1, 1, ...shape] });
    const inputs = { Q: four(tensor([1], [1, 1])), K: four(k), V: four(v) };
    const { Y } = await attention(engine, inputs, { scale: 1 });
    const whole = await engine.attention(...many);
    return {
      value: output.data[0],
      onnx: Y.data[0],
      many: [...whole.output.data],
      info: engine.info,
    };
  } finally {
    engine.dispose();
  }
};
