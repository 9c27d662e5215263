/** A loaded model. After its device was lost, it is loaded again with the next call. */
import type { Cancel, EngineTrainOptions, Engine, Model } from '../engine.js';
import { WeftError, asWeftError, isTrap, plain } from '../error.js';
import type { EventName, Handle, Made, ModelMethods, OpenRequest, SentAdapter } from '../protocol.js';
import type { ModelSource } from '../sources/model-source.js';
import type * as t from '../types.js';
import { AdapterObject } from './adapter-object.js';
import { Call } from './call.js';
import { openModel, loadWeights } from './opening.js';
import { Served, type Serves } from './served.js';
import { BatchObject } from './batch-object.js';
import { type Movable, OnDevice } from './on-device.js';
import { SessionObject } from './session-object.js';
import { TrainerObject } from './trainer-object.js';
import type { World } from './world.js';

/** Milliseconds between two looks for a lost device. */
const WATCH_MS = 1000;

/** A model on a device. Another device has another number. */
export interface Loaded {
  readonly model: Model;
  readonly generation: number;
}

export class ModelObject extends Served implements Serves<ModelMethods> {
  readonly world: World;
  readonly engine: Engine;
  readonly #source: ModelSource;
  readonly #request: OpenRequest;
  #loaded: Loaded;
  #restoring: Promise<Loaded> | undefined;
  /** Looks for a loss while no call runs. */
  readonly #watch: ReturnType<typeof setInterval> | undefined;
  /** The loaded model whose loss was seen so. */
  #seen: Loaded | undefined;

  constructor(world: World, engine: Engine, request: OpenRequest, source: ModelSource, model: Model) {
    super();
    this.world = world;
    this.engine = engine;
    this.#request = request;
    this.#source = source;
    this.#loaded = { model, generation: 0 };
    if (this.info.executor === 'gpu') this.#watch = setInterval(() => this.#look(), WATCH_MS);
  }

  get info(): t.ModelInfo {
    const info = this.#loaded.model.info();
    return { ...info, notes: [...info.notes, ...this.#source.notes] };
  }

  /**
   * Does work with the model on a device that is there, and tells if the device is lost meanwhile.
   */
  async during<T>(work: (loaded: Loaded) => Promise<T> | T): Promise<T> {
    const loaded = await this.live();
    try {
      return await work(loaded);
    } catch (error) {
      const isLost = !isTrap(error) && (loaded.model.lost() || asWeftError(error).code === 'device-lost');
      if (!isLost) throw error;
      const lost = new WeftError('device-lost', 'the GPU is gone (its driver was reset, or the browser took it away); the model is loaded again: repeat the call', {}, { cause: error });
      // The next call waits for it, and gets its error.
      if (this.#loaded === loaded) this.#restore(lost).catch(() => {});
      throw lost;
    }
  }

  needs(_call: Call, options: t.SessionOptions): Promise<t.Needs> {
    return this.during(({ model }) => model.needs(options));
  }

  session(_call: Call, options: t.SessionOptions, adapters: readonly SentAdapter[]): Promise<Made<{ context: number }>> {
    return this.during(async (loaded) => {
      const session = new SessionObject(this, await loaded.model.session(options), loaded.generation);
      return { handle: await this.#added(session, adapters, loaded), facts: { context: session.inner.context } };
    });
  }

  batch(_call: Call, options: t.BatchOptions, adapters: readonly SentAdapter[]): Promise<Made<t.BatchFacts>> {
    return this.during(async (loaded) => {
      const batch = new BatchObject(this, await loaded.model.batch(options), loaded.generation);
      const { context, sequences } = batch.inner;
      return { handle: await this.#added(batch, adapters, loaded), facts: { context, sequences } };
    });
  }

  /** Gives a new object its first adapters, and a handle. */
  async #added<T extends Movable>(object: OnDevice<T>, adapters: readonly SentAdapter[], loaded: Loaded): Promise<Handle> {
    try {
      if (adapters.length > 0) await object.apply(this.adapters(adapters), loaded);
    } catch (error) {
      this.children.delete(object);
      await object.release();
      throw error;
    }
    return this.world.registry.add(object);
  }

  adapter(_call: Call, files: readonly t.NamedBytes[]): Promise<Made<t.AdapterInfo>> {
    return this.during(async (loaded) => {
      const adapter = new AdapterObject(this, files);
      try {
        const facts = (await adapter.on(loaded)).info();
        return { handle: this.world.registry.add(adapter), facts };
      } catch (error) {
        this.children.delete(adapter);
        throw error;
      }
    });
  }

  trainer(call: Call, options: EngineTrainOptions): Promise<Made<{ facts: t.TrainFacts; memory: t.TrainMemory }>> {
    return this.during(async ({ model, generation }) => {
      const make = (cancel: Cancel) => this.#source.during(call, () => model.trainer(options, call.report, cancel));
      const trainer = new TrainerObject(this, await call.cancellable(this.engine, model, make), generation);
      return { handle: this.world.registry.add(trainer), facts: trainer.facts };
    });
  }

  tokenize(_call: Call, text: string, options: t.TokenizeOptions): Uint32Array {
    return this.#loaded.model.tokenize(text, options);
  }

  detokenize(_call: Call, ids: Uint32Array): string {
    return this.#loaded.model.detokenize(ids);
  }

  render(_call: Call, messages: readonly t.Message[], options: t.RenderOptions): string {
    return this.#loaded.model.render(messages, options);
  }

  taps(): string[] {
    return this.#loaded.model.taps();
  }

  /** A model whose device is lost is loaded again at once, and its page is told. If that fails, the next call tries again. */
  #look(): void {
    const loaded = this.#loaded;
    if (this.#seen === loaded || !loaded.model.lost()) return;
    this.#seen = loaded;
    if (this.calls.size > 0 || [...this.children].some(({ calls }) => calls.size > 0)) return;
    this.live().catch(() => {});
  }

  async release(): Promise<void> {
    clearInterval(this.#watch);
    await this.#restoring?.catch(() => {});
    this.#loaded.model.free();
    await this.#source.close();
  }

  /** The adapters that handles name. */
  adapters(sent: readonly SentAdapter[]): { adapter: AdapterObject; scale: number }[] {
    return sent.map(({ handle, scale }) => {
      const adapter = this.world.registry.get(handle);
      if (adapter instanceof AdapterObject && adapter.parent === this) return { adapter, scale };
      throw new WeftError('closed', 'an adapter was closed; load it again with `model.adapter`');
    });
  }

  /** The model on a device that is there. It is loaded again if its device is lost. */
  async live(): Promise<Loaded> {
    if (this.#restoring !== undefined) return this.#restoring;
    return this.#loaded.model.lost() ? this.#restore() : this.#loaded;
  }

  #restore(error?: WeftError): Promise<Loaded> {
    if (this.#restoring !== undefined) return this.#restoring;
    this.#tell('devicelost', error);
    this.#restoring = this.#reload().finally(() => (this.#restoring = undefined));
    return this.#restoring;
  }

  async #reload(): Promise<Loaded> {
    const before = this.#loaded;
    const call = new Call(-1, () => {});
    try {
      const model = await this.#source.during(call, async () => {
        const opened = await openModel(call, this.engine, this.#request, this.#source);
        return loadWeights(call, this.engine, this.#source, opened);
      });
      this.#loaded = { model, generation: before.generation + 1 };
      // A call may use it until it gets its error.
      this.queue.run(() => before.model.free()).catch(() => {});
    } catch (error) {
      if (isTrap(error)) throw error;
      const { message } = asWeftError(error);
      throw new WeftError('device-lost', `the GPU is gone, and the model could not be loaded again: ${message}`, {}, { cause: error });
    }
    this.#tell('devicerestored');
    for (const child of this.children) {
      // An object that cannot be moved now says so when it is used.
      if (child instanceof OnDevice) child.queue.run(() => child.move(this.#loaded)).catch(() => {});
    }
    return this.#loaded;
  }

  #tell(name: EventName, error?: WeftError): void {
    this.world.post({ type: 'event', target: this.handle, name, ...(error && { error: plain(error) }) });
  }
}
