// WebGPU: compute pipelines, made asynchronously and kept by name. Shapes and options are uniforms, never part of a shader,
// so that the names below are all there are, whatever is called.
import type { Form, Forms } from './forms.js';
import { attentionText, type Writing } from './shaders/attention.js';
import { directText, directTile } from './shaders/direct.js';
import { halfText } from './shaders/half.js';
import { linearText } from './shaders/linear.js';
import { matrixText } from './shaders/matrix.js';
import { mergePartsText } from './shaders/merge-parts.js';
import { mergeText } from './shaders/merge.js';
import { pointwiseText } from './shaders/pointwise.js';
import { tiles, type Elements, type Tile } from './shaders/tile.js';

/** What stands at each binding: the uniform, an array that is read, or one that is written. */
type Binding = 'uniform' | 'read-only-storage' | 'storage';

interface Kind {
  text(): string;
  /** By binding number. */
  bindings: Readonly<Record<number, Binding>>;
  /** What a device has to have. */
  needs?: { feature: 'subgroups' };
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

const attention = (tile: Tile, vectors: 1 | 2, writing?: Writing): Kind => ({
  text: () => attentionText(tile, vectors, writing),
  bindings: attentionBindings,
  ...(writing?.subgroups === true && { needs: { feature: 'subgroups' } }),
});
const direct = (vectors: 1 | 2, elements: Elements): Kind => ({
  text: () => directText(directTile(tiles.tall), vectors, elements),
  bindings: attentionBindings,
});
const vec4 = { elements: 'vec4', subgroups: false } as const;
const half = { elements: 'half', subgroups: false } as const;

/** The attention kernel in its forms (forms.ts): `${form}${tile}${vectors}`. */
const forms = {
  vec4Tall1: attention(tiles.tall, 1, vec4),
  vec4Tall2: attention(tiles.tall, 2, vec4),
  vec4Flat1: attention(tiles.flat, 1, vec4),
  vec4Flat2: attention(tiles.flat, 2, vec4),
  subgroupsTall1: attention(tiles.tall, 1, { ...vec4, subgroups: true }),
  subgroupsTall2: attention(tiles.tall, 2, { ...vec4, subgroups: true }),
  subgroupsFlat1: attention(tiles.flat, 1, { ...vec4, subgroups: true }),
  subgroupsFlat2: attention(tiles.flat, 2, { ...vec4, subgroups: true }),
  directTall1: direct(1, 'vec4'),
  directTall2: direct(2, 'vec4'),
  halfVec4Tall1: attention(tiles.tall, 1, half),
  halfVec4Tall2: attention(tiles.tall, 2, half),
  halfVec4Flat1: attention(tiles.flat, 1, half),
  halfVec4Flat2: attention(tiles.flat, 2, half),
  halfSubgroupsTall1: attention(tiles.tall, 1, { ...half, subgroups: true }),
  halfSubgroupsTall2: attention(tiles.tall, 2, { ...half, subgroups: true }),
  halfSubgroupsFlat1: attention(tiles.flat, 1, { ...half, subgroups: true }),
  halfSubgroupsFlat2: attention(tiles.flat, 2, { ...half, subgroups: true }),
  halfDirectTall1: direct(1, 'half'),
  halfDirectTall2: direct(2, 'half'),
  toHalf: { text: halfText, bindings: { 0: 'uniform', 1: read, 6: 'storage' } },
} as const satisfies Record<string, Kind>;

/** What every device runs. */
export const baselineKinds = {
  attentionTall1: attention(tiles.tall, 1),
  attentionTall2: attention(tiles.tall, 2),
  attentionFlat1: attention(tiles.flat, 1),
  attentionFlat2: attention(tiles.flat, 2),
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

/** Every shader that there is. */
export const kinds: Readonly<Record<keyof typeof baselineKinds | keyof typeof forms, Kind>> = {
  ...baselineKinds,
  ...forms,
};

export type PipelineName = keyof typeof kinds;

/** The attention kernel of a form. */
export const attentionName = (form: Form, tile: Tile, vectors: 1 | 2): PipelineName =>
  `${form === 'baseline' ? 'attention' : form}${tile === tiles.tall ? 'Tall' : 'Flat'}${vectors}` as PipelineName;

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
  /** Which form of attention a call takes; without, the baseline. */
  forms: Forms | undefined;

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
    const { text, bindings } = kinds[name];
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
