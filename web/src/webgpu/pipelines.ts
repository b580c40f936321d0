// WebGPU: compute pipelines, made asynchronously and kept by name. Shapes and options are uniforms, never part of a shader,
// so that the names below are all there are, whatever is called.
import { attentionText } from './shaders/attention.js';
import { linearText } from './shaders/linear.js';
import { matrixText } from './shaders/matrix.js';
import { mergePartsText } from './shaders/merge-parts.js';
import { mergeText } from './shaders/merge.js';
import { pointwiseText } from './shaders/pointwise.js';
import { tiles } from './shaders/tile.js';

/** What stands at each binding: the uniform, an array that is read, or one that is written. */
type Binding = 'uniform' | 'read-only-storage' | 'storage';

interface Kind {
  text(): string;
  /** By binding number. */
  bindings: Readonly<Record<number, Binding>>;
}

const read = 'read-only-storage';
const attentionBindings = {
  0: 'uniform',
  1: read,
  2: read,
  3: read,
  4: read,
  5: read,
  6: 'storage',
  7: 'storage',
} as const;
const mergeBindings = {
  0: 'uniform',
  1: read,
  2: read,
  5: read,
  6: 'storage',
  7: 'storage',
} as const;

/** Every shader that there is. */
export const kinds = {
  attentionTall1: { text: () => attentionText(tiles.tall, 1), bindings: attentionBindings },
  attentionTall2: { text: () => attentionText(tiles.tall, 2), bindings: attentionBindings },
  attentionFlat1: { text: () => attentionText(tiles.flat, 1), bindings: attentionBindings },
  attentionFlat2: { text: () => attentionText(tiles.flat, 2), bindings: attentionBindings },
  mergeTall: { text: () => mergeText(tiles.tall), bindings: mergeBindings },
  mergeFlat: { text: () => mergeText(tiles.flat), bindings: mergeBindings },
  matrix: {
    text: matrixText,
    bindings: { 0: 'uniform', 1: read, 2: read, 3: read, 4: read, 5: read, 6: 'storage' },
  },
  mergeParts: {
    text: mergePartsText,
    bindings: { 0: 'uniform', 1: read, 2: read, 6: 'storage', 7: 'storage' },
  },
  pointwise: {
    text: pointwiseText,
    bindings: { 0: 'uniform', 1: read, 2: read, 6: 'storage' },
  },
  linear: {
    text: linearText,
    bindings: { 0: 'uniform', 1: read, 2: read, 4: read, 5: read, 6: 'storage' },
  },
} as const satisfies Record<string, Kind>;

export type PipelineName = keyof typeof kinds;

const computeStage = 4; // GPUShaderStage.COMPUTE, which Node has no global for

export interface Pipeline {
  pipeline: GPUComputePipeline;
  layout: GPUBindGroupLayout;
  bindings: Kind['bindings'];
}

/** A device's pipelines. */
export class Pipelines {
  readonly #device: GPUDevice;
  readonly #made = new Map<PipelineName, Promise<Pipeline>>();

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  get(name: PipelineName): Promise<Pipeline> {
    let pipeline = this.#made.get(name);
    if (pipeline === undefined) {
      pipeline = this.#make(name);
      this.#made.set(name, pipeline);
      // A failure is not remembered.
      pipeline.catch(() => this.#made.delete(name));
    }
    return pipeline;
  }

  async #make(name: PipelineName): Promise<Pipeline> {
    const device = this.#device;
    const { text, bindings } = kinds[name] as Kind;
    const label = `headwise ${name}`;
    const layout = device.createBindGroupLayout({
      label,
      entries: Object.entries(bindings).map(([binding, type]) => ({
        binding: Number(binding),
        visibility: computeStage,
        buffer: { type },
      })),
    });
    const pipeline = await device.createComputePipelineAsync({
      label,
      layout: device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ label, code: text() }), entryPoint: 'main' },
    });
    return { pipeline, layout, bindings };
  }
}
