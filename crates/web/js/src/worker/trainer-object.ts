/** A run of training. It belongs to one device: after a loss it goes on from a checkpoint. */
import type { Cancel, Trainer } from '../engine.js';
import { WeftError } from '../error.js';
import type { TrainerMethods } from '../protocol.js';
import type * as t from '../types.js';
import type { Call } from './call.js';
import type { Loaded, ModelObject } from './model-object.js';
import { Served, type Serves } from './served.js';

export class TrainerObject extends Served implements Serves<TrainerMethods> {
  readonly #model: ModelObject;
  readonly #trainer: Trainer;
  readonly #generation: number;

  constructor(model: ModelObject, trainer: Trainer, generation: number) {
    super(model);
    this.#model = model;
    this.#trainer = trainer;
    this.#generation = generation;
  }

  get facts(): { facts: t.TrainFacts; memory: t.TrainMemory } {
    return { facts: this.#trainer.facts(), memory: this.#trainer.memory() };
  }

  examples(_call: Call, count: number): t.Piece[][] {
    return this.#trainer.examples(count);
  }

  log(): t.StepRecord[] {
    return this.#trainer.log();
  }

  step(call: Call): Promise<t.StepResult> {
    return this.#cancellable(call, (cancel) => this.#trainer.step(call.report, cancel));
  }

  evaluate(call: Call, data: Uint8Array | undefined): Promise<t.Evaluation> {
    return this.#cancellable(call, (cancel) => this.#trainer.evaluate(data, call.report, cancel));
  }

  savePeft(): Promise<t.NamedBytes[]> {
    return this.#during(() => this.#trainer.savePeft());
  }

  saveGguf(): Promise<Uint8Array> {
    return this.#during(() => this.#trainer.saveGguf());
  }

  checkpoint(): Promise<Uint8Array> {
    return this.#during(() => this.#trainer.checkpoint());
  }

  restore(_call: Call, bytes: Uint8Array): Promise<void> {
    return this.#during(async () => this.#trainer.restore(bytes));
  }

  async release(): Promise<void> {
    this.#trainer.free();
  }

  #cancellable<T>(call: Call, work: (cancel: Cancel) => Promise<T>): Promise<T> {
    call.check();
    return this.#during(({ model }) => call.cancellable(this.#model.engine, model, work));
  }

  async #during<T>(work: (loaded: Loaded) => Promise<T>): Promise<T> {
    const { generation } = await this.#model.live();
    if (generation !== this.#generation) {
      throw new WeftError('device-lost', 'the trainer was on a GPU that is gone; close it, make a new one, and restore the last checkpoint');
    }
    return this.#model.during(work);
  }
}
