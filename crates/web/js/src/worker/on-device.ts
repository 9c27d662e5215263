/**
 * What holds tokens beside a model, with adapters. It moves to the model's new device when the old
 * one was lost.
 */
import type { Adapters, Cancel, Freed, Model } from '../engine.js';
import type { SentAdapter } from '../protocol.js';
import type { AdapterObject } from './adapter-object.js';
import type { Call } from './call.js';
import type { Loaded, ModelObject } from './model-object.js';
import { Served } from './served.js';

type Applied = readonly { readonly adapter: AdapterObject; readonly scale: number }[];

export interface Movable extends Freed {
  setAdapters(adapters: Adapters): void;
  moveTo(model: Model, adapters: Adapters): Promise<void>;
}

export abstract class OnDevice<T extends Movable> extends Served {
  readonly inner: T;
  readonly #model: ModelObject;
  #generation: number;
  #applied: Applied = [];

  constructor(model: ModelObject, inner: T, generation: number) {
    super(model);
    this.#model = model;
    this.inner = inner;
    this.#generation = generation;
  }

  setAdapters(_call: Call, adapters: readonly SentAdapter[]): Promise<void> {
    return this.during((loaded) => this.apply(this.#model.adapters(adapters), loaded));
  }

  /** Replaces the adapters by adapters beside this model. */
  async apply(applied: Applied, loaded: Loaded): Promise<void> {
    await this.#withAdapters(applied, loaded, (adapters) => this.inner.setAdapters(adapters));
    this.#applied = applied;
  }

  /** Goes on with the tokens on this device. */
  async move(loaded: Loaded): Promise<void> {
    if (loaded.generation === this.#generation) return;
    await this.#withAdapters(this.#applied, loaded, (adapters) => this.inner.moveTo(loaded.model, adapters));
    this.#generation = loaded.generation;
  }

  async release(): Promise<void> {
    this.inner.free();
  }

  protected during<R>(work: (loaded: Loaded) => Promise<R>): Promise<R> {
    return this.#model.during(async (loaded) => {
      await this.move(loaded);
      return work(loaded);
    });
  }

  protected cancellable<R>(call: Call, work: (cancel: Cancel) => Promise<R>): Promise<R> {
    return this.during(({ model }) => call.cancellable(this.#model.engine, model, work));
  }

  async #withAdapters(applied: Applied, loaded: Loaded, work: (adapters: Adapters) => void | Promise<void>): Promise<void> {
    const adapters = new this.#model.engine.Adapters();
    try {
      for (const { adapter, scale } of applied) adapters.add(await adapter.on(loaded), scale);
      await work(adapters);
    } finally {
      adapters.free();
    }
  }
}
