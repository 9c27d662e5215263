/** A conversation, which moves to the model's new device when the old one was lost. */
import type { Adapters, Cancel, Plain, Session } from '../engine.js';
import type { SentAdapter, SessionMethods } from '../protocol.js';
import type * as t from '../types.js';
import type { AdapterObject } from './adapter-object.js';
import type { Call } from './call.js';
import type { Loaded, ModelObject } from './model-object.js';
import { Served, type Serves } from './served.js';

type Applied = readonly { readonly adapter: AdapterObject; readonly scale: number }[];

export class SessionObject extends Served implements Serves<SessionMethods> {
  readonly #model: ModelObject;
  readonly #session: Session;
  #generation: number;
  #applied: Applied = [];

  constructor(model: ModelObject, session: Session, generation: number) {
    super(model);
    this.#model = model;
    this.#session = session;
    this.#generation = generation;
  }

  get context(): number {
    return this.#session.context;
  }

  send(call: Call, messages: readonly t.Message[], options: Plain<t.AnswerOptions>): Promise<t.Finish> {
    return this.#cancellable(call, (cancel) => this.#session.send(messages, options, call.token, call.report, cancel));
  }

  complete(call: Call, text: string, options: Plain<t.CompleteOptions>): Promise<t.Finish> {
    return this.#cancellable(call, (cancel) => this.#session.complete(text, options, call.token, call.report, cancel));
  }

  async logits(call: Call, ids: Uint32Array): Promise<t.Logits> {
    call.check();
    return this.#cancellable(call, (cancel) => this.#session.logits(ids, cancel));
  }

  tokens(): Uint32Array {
    return this.#session.tokens();
  }

  setAdapters(_call: Call, adapters: readonly SentAdapter[]): Promise<void> {
    return this.#during((loaded) => this.apply(this.#model.adapters(adapters), loaded));
  }

  rollback(_call: Call, tokens: number): void {
    this.#session.rollback(tokens);
  }

  save(): Promise<Uint8Array> {
    return this.#during(() => this.#session.save());
  }

  load(_call: Call, bytes: Uint8Array): Promise<void> {
    return this.#during(() => this.#session.load(bytes));
  }

  /** Replaces the adapters by adapters beside this model. */
  async apply(applied: Applied, loaded: Loaded): Promise<void> {
    await this.#withAdapters(applied, loaded, (adapters) => this.#session.setAdapters(adapters));
    this.#applied = applied;
  }

  /** Goes on with the tokens on this device. */
  async move(loaded: Loaded): Promise<void> {
    if (loaded.generation === this.#generation) return;
    await this.#withAdapters(this.#applied, loaded, (adapters) => this.#session.moveTo(loaded.model, adapters));
    this.#generation = loaded.generation;
  }

  async release(): Promise<void> {
    this.#session.free();
  }

  #during<T>(work: (loaded: Loaded) => Promise<T>): Promise<T> {
    return this.#model.during(async (loaded) => {
      await this.move(loaded);
      return work(loaded);
    });
  }

  #cancellable<T>(call: Call, work: (cancel: Cancel) => Promise<T>): Promise<T> {
    return this.#during(() => call.cancellable(this.#model.engine, work));
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
