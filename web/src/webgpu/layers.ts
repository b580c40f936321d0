// WebGPU: the layers whose calls may come here: their configurations and, from the first call on, their parameters on the device.
import type { Backend } from '../backend/backend.js';
import type { LayerConfig, ParameterArrays } from '../request.js';
import type { HeldLayer } from './compute.js';
import { DeviceParameters } from './layer.js';
import type { WorkingDevice } from './working-device.js';

interface Layer {
  config: LayerConfig;
  parameters: Promise<DeviceParameters> | undefined;
}

export class GpuLayers {
  readonly #device: WorkingDevice;
  readonly #core: Pick<Backend, 'run'>;
  readonly #layers = new Map<number, Layer>();

  /** `core` has the parameters. */
  constructor(device: WorkingDevice, core: Pick<Backend, 'run'>) {
    this.#device = device;
    this.#core = core;
  }

  add(number: number, config: LayerConfig): void {
    this.#layers.set(number, { config, parameters: undefined });
  }

  configOf(number: number): LayerConfig | undefined {
    return this.#layers.get(number)?.config;
  }

  /** The core's parameters have changed. */
  forgetParameters(number: number): void {
    const layer = this.#layers.get(number);
    const parameters = layer?.parameters;
    if (layer !== undefined) layer.parameters = undefined;
    parameters?.then((held) => held.release()).catch(() => undefined);
  }

  remove(number: number): void {
    this.forgetParameters(number);
    this.#layers.delete(number);
  }

  clear(): void {
    this.#layers.clear();
  }

  /** A layer that is there, with the parameters of now, whatever is set later. The caller has to release them. */
  async hold(number: number): Promise<HeldLayer> {
    const layer = this.#layers.get(number) as Layer;
    layer.parameters ??= this.#fetch(layer, number);
    const parameters = await layer.parameters;
    parameters.retain();
    return { config: layer.config, parameters };
  }

  #fetch(layer: Layer, number: number): Promise<DeviceParameters> {
    const fetched = this.#core.run({ op: 'getParameters', layer: number });
    const made = fetched.then(({ parameters }) =>
      this.#device.withCall(async (call) => {
        const { buffers } = this.#device;
        const held = call.guard(
          () => new DeviceParameters(call, buffers, parameters as ParameterArrays),
        );
        await call.settled();
        return held;
      }),
    );
    made.catch(() => {
      if (layer.parameters === made) layer.parameters = undefined;
    });
    return made;
  }
}
