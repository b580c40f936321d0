// Wasm: multi-head attention layers in the heap: made, their parameters set and read.
import { parameterCount, parameterPaths, parameterShapes } from '../layer/parameters.js';
import type { LayerConfig, LayerRequest, ParameterArrays, Response } from '../request.js';
import { product } from '../validation/shapes.js';
import { alignUp } from './heap.js';
import type { CoreParts } from './objects.js';
import { withConfig } from './rope.js';
import { Struct } from './struct.js';

const merges = ['concat', 'sum'];
const scores = ['scaled-dot', 'dot', 'cosine', 'additive'];

export class Layers {
  readonly #core: CoreParts;
  readonly #configStruct: Struct;
  readonly #sourcesStruct: Struct;

  constructor(core: CoreParts) {
    this.#core = core;
    this.#configStruct = new Struct(core.layout, 'MultiHeadAttentionConfig');
    this.#sourcesStruct = new Struct(core.layout, 'ParameterSources');
  }

  run(request: LayerRequest): Response {
    switch (request.op) {
      case 'createLayer':
        this.#create(request.layer, request.config);
        return {};
      case 'setParameters':
        this.#setParameters(request.layer, request.parameters);
        return {};
      case 'getParameters':
        return { parameters: this.#getParameters(request.layer) };
    }
  }

  #create(layer: number, config: LayerConfig): void {
    const { bindings, heap, registry, error } = this.#core;
    // The core keeps each parameter plain and packed.
    heap.check(4 * parameterCount(config), 'multiHeadAttention');
    const struct = this.#configStruct;
    struct.clear();
    struct.set('embed_dim', config.embedDim);
    struct.set('heads', config.heads);
    struct.set('kv_heads', config.kvHeads);
    struct.set('head_dim', config.headDim);
    struct.set('value_head_dim', config.valueHeadDim);
    struct.set('key_dim', config.keyDim);
    struct.set('value_dim', config.valueDim);
    struct.set('output_dim', config.outputDim);
    struct.set('bias', config.bias ? 1 : 0);
    struct.set('merge', merges.indexOf(config.merge));
    struct.set('projection', config.convolution === undefined ? 0 : 1);
    struct.set('kernel_size', config.convolution?.kernelSize ?? 1);
    struct.set('causal_convolution', config.convolution?.causal === true ? 1 : 0);
    struct.set('score', scores.indexOf(config.score));
    struct.set('seed_low', config.seed[0]);
    struct.set('seed_high', config.seed[1]);
    withConfig(heap, struct, config.rope, 'layer', (address) => {
      const created = bindings.createLayer(address);
      if (created === 0) throw error('multiHeadAttention');
      registry.add('layer', layer, created, (at) => bindings.destroyLayer(at), config);
    });
  }

  #setParameters(layer: number, parameters: ParameterArrays): void {
    const { bindings, heap, registry, error } = this.#core;
    const owner = registry.addressOf('layer', layer);
    const size = alignUp(this.#sourcesStruct.size);
    const bytes = parameters.reduce((sum, array) => sum + alignUp(array?.byteLength ?? 0), size);
    heap.withBlock(bytes, 'layer', (address) => {
      const views = heap.views();
      this.#sourcesStruct.write(views, address); // all null
      const pointers = (address + this.#sourcesStruct.offsetOf('data')) / 4;
      let at = address + size;
      parameters.forEach((array, kind) => {
        if (array === undefined) return;
        heap.write(array, at);
        views.u32[pointers + kind] = at;
        at += alignUp(array.byteLength);
      });
      if (bindings.setParameters(owner, address) !== 0) throw error('setWeights');
    });
  }

  #getParameters(layer: number): ParameterArrays {
    const { bindings, heap, registry } = this.#core;
    const owner = registry.addressOf('layer', layer);
    const shapes = parameterShapes(registry.detailsOf<LayerConfig>('layer', layer));
    return parameterPaths.map((_, kind) => {
      const shape = shapes[kind];
      if (shape === undefined) return undefined;
      const length = product(shape);
      return heap.withBlock(length * 4, 'layer', (address) => {
        bindings.getParameter(owner, kind, address);
        return heap.read(address, length);
      });
    });
  }
}
