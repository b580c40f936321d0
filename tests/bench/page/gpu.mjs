// Bench: the page where our GPU backend and onnxruntime-web's run on one device, call by call in turn. Answers what
// ../gpu-browser.mjs calls, in plain data.
import * as ort from 'onnxruntime-web/webgpu';
import { createEngine } from '../../../dist/index.js';
import { inputsOf } from '../inputs.mjs';
import { median } from '../statistics.mjs';
import { graphOf } from '../onnx/graphs.mjs';
import { encodeModel } from '../onnx/model.mjs';

// GPUBufferUsage: COPY_SRC, COPY_DST, STORAGE
const usage = 0x04 | 0x08 | 0x80;

let engine;
let core;
let device;

function shapeOf([H, L, S, D]) {
  return { kind: 'attention', B: 1, H, G: H, L, S, D };
}

/** onnxruntime's operator on a shape: it runs on its WebGPU provider, or create() rejects. */
async function rival(shape, inputs, onDevice) {
  const { graph, feeds, read } = graphOf(shape, inputs, 'MultiHeadAttention');
  const session = await ort.InferenceSession.create(encodeModel(graph), {
    executionProviders: ['webgpu'],
    ...(onDevice && { preferredOutputLocation: 'gpu-buffer' }),
    // Else an operator that the provider refuses would run on the CPU, unnoticed.
    extra: { session: { disable_cpu_ep_fallback: '1' } },
  });
  device ??= await ort.env.webgpu.device;
  const buffers = [];
  const tensors = {};
  for (const [name, { dims }] of Object.entries(graph.inputs)) {
    if (onDevice) {
      const buffer = device.createBuffer({ size: feeds[name].byteLength, usage });
      device.queue.writeBuffer(buffer, 0, feeds[name]);
      buffers.push(buffer);
      tensors[name] = ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims });
    } else tensors[name] = new ort.Tensor('float32', feeds[name], dims);
  }
  return {
    run: () => session.run(tensors).then(({ output }) => output),
    read,
    async release() {
      await session.release();
      for (const buffer of buffers) buffer.destroy();
    },
  };
}

async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

const station = {
  /** A session makes onnxruntime's device; our engine is given the same. */
  async open() {
    ort.env.logLevel = 'error';
    const [H, L, S, D] = [1, 4, 4, 4];
    const shape = shapeOf([H, L, S, D]);
    const first = await rival(shape, inputsOf(shape), false);
    await first.run(); // and is never released: the device would go with its last session
    engine = await createEngine({
      backend: 'webgpu',
      gpuDevice: device,
      offMainThread: false,
      threads: 1,
    });
    core = await createEngine({ backend: 'wasm', threads: 1, offMainThread: false });
    return { gpu: engine.info.gpu, ort: ort.env.versions.web };
  },

  /** Medians in ms of `rounds` calls a side, in turn; and the outputs' largest differences from the core's. */
  async measure({ sizes, rounds, resident }) {
    const shape = shapeOf(sizes);
    const { H, L, S, D } = shape;
    const inputs = inputsOf(shape);
    const other = await rival(shape, inputs, resident);
    const tensor = (data, rows) => ({ data, shape: [1, H, rows, D] });
    let ours = [tensor(inputs.q, L), tensor(inputs.k, S), tensor(inputs.v, S)];
    if (resident) ours = await Promise.all(ours.map((each) => engine.upload(each)));
    const own = () => engine.attention(...ours, resident ? { resident: true } : {});
    const settle = (output) => device.queue.onSubmittedWorkDone().then(() => output.dispose());
    const sides = {
      headwise: async () => {
        const { output } = await own();
        if (resident) await settle(output);
        return output;
      },
      onnxruntime: async () => {
        const output = await other.run();
        if (resident) await settle(output);
        return output;
      },
    };
    const differences = {};
    const [a, b] = [await sides.headwise(), await sides.onnxruntime()];
    if (!resident) {
      const { output } = await core.attention(...ours);
      const differs = (data) =>
        data.reduce((most, x, i) => Math.max(most, Math.abs(x - output.data[i])), 0);
      differences.headwise = differs(a.data);
      differences.onnxruntime = differs(other.read(b.data));
    }
    const times = { headwise: [], onnxruntime: [] };
    for (let i = 0; i < rounds; i++) {
      for (const side of Object.keys(sides)) times[side].push(await timed(sides[side]));
    }
    await other.release();
    if (resident) for (const each of ours) each.dispose();
    return {
      headwise: median(times.headwise),
      onnxruntime: median(times.onnxruntime),
      differences,
      variants: engine.info.gpu.variants,
    };
  },
};

globalThis.callStation = async (method, args) => {
  try {
    return { result: await station[method](args) };
  } catch (error) {
    return { error: { name: error?.name, message: String(error?.message ?? error) } };
  }
};
