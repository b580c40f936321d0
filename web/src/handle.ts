// Between public objects and the core: the one life of everything that an engine makes and that lives in its core: layers, caches,
// Transformers, decodings. A handle has a number, sends requests in the order of the calls, tells why its object could not be made,
// and frees it once, by dispose() or when nobody holds it any more.
import type { Runner } from './backend/backend.js';
import { disposed } from './errors.js';
import type { Request, Response, ShortRequest } from './request.js';

/** What objects need of the engine that made them. */
export interface HandleOwner {
  host: Runner;
  /** The engine lives in a worker, where nothing can be made at once. */
  isRemote: boolean;
  /** Throws DISPOSED when the engine has been disposed. */
  checkAlive(): unknown;
  /** One sequence for all of an engine's objects. */
  nextNumber(): number;
}

interface Place {
  host: Runner;
  number: number;
}

function destroy({ host, number }: Place): void {
  // An engine that is gone has freed it already.
  host.run({ op: 'destroy', number }).catch(() => undefined);
}

// A net for objects that are dropped without dispose(): memory that is not JavaScript's own is not collected by itself.
const dropped = /* @__PURE__ */ new FinalizationRegistry<Place>(destroy);

export class Handle {
  readonly number: number;
  readonly #owner: HandleOwner;
  readonly #kind: string;
  // Where it is made later, settled when it is there, or failed to be.
  readonly #created: Promise<unknown> | undefined;
  #failure: unknown;
  #disposed = false;

  /**
   * @param kind what the object is called in messages.
   * @param create makes the request that makes it.
   * @param isQueued it is made after the calls made so far, not at once. Always so where the engine lives in a worker; what goes
   * wrong is then told by the first call.
   */
  constructor(
    owner: HandleOwner,
    kind: string,
    create: (number: number) => ShortRequest,
    isQueued = false,
  ) {
    this.#owner = owner;
    this.#kind = kind;
    this.number = owner.nextNumber();
    const request = create(this.number);
    if (owner.isRemote || isQueued) {
      this.#created = owner.host.run(request).catch((error: unknown) => {
        this.#failure = error;
      });
    } else {
      owner.host.runSync(request);
    }
    dropped.register(this, { host: owner.host, number: this.number }, this);
  }

  /** Whether it may not be there yet. */
  get isQueued(): boolean {
    return this.#created !== undefined;
  }

  /** Throws DISPOSED when the object, or its engine, is of no use any more. */
  check(): void {
    if (this.#disposed) throw disposed(`the ${this.#kind}`);
    this.#owner.checkAlive();
  }

  /**
   * The request goes out before anything is awaited: calls keep their order, and what they name has been read when this returns.
   */
  async run(request: Request, signal?: AbortSignal): Promise<Response> {
    this.check();
    const running = this.#owner.host.run(request, signal);
    try {
      return await running;
    } catch (error) {
      await this.#created;
      throw this.#failure ?? error;
    }
  }

  /** At once. `out`, if given, becomes the response's output. */
  runSync(request: Request, out?: Float32Array): Response {
    this.check();
    return this.#owner.host.runSync(request, out);
  }

  /** What another object needs that is made by this one, and lives no longer. */
  owner(): HandleOwner {
    return { ...this.#owner, checkAlive: () => this.check() };
  }

  /** Frees the object once calls in progress are done. May be called again. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    dropped.unregister(this);
    destroy({ host: this.#owner.host, number: this.number });
  }
}
