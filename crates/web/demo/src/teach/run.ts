/** A run of training: checked, stepped, kept, and gone on with after a reload or a lost device. */
import type { NamedBytes, Piece, StepResult } from '@weft-llm/web';
import type { Trainer } from '../engine/api.js';
import { isCancelled, lineOf, sentenceOf } from '../engine/errors.js';
import { host } from '../models/host.js';
import { announce } from '../ui/announce.js';
import { digits } from '../ui/format.js';
import { Signal } from '../ui/signal.js';
import { forgetRun, keepRun, keptCheckpoint, keptRun, type KeptRun, type LogEntry } from './kept.js';
import { joined, type Split } from './lines.js';
import { trainOptions, type RunOptions } from './options.js';

export type RunState =
  | { readonly kind: 'none' | 'checking' }
  | { readonly kind: 'kept'; readonly run: KeptRun }
  | { readonly kind: 'ready' | 'running' | 'stopped' | 'done' };

/** A refused line, or a sentence about the whole run. */
export interface RunError {
  readonly sentence: string;
  readonly line?: number;
}

interface Plan {
  readonly split: Split;
  readonly options: RunOptions;
}

const CHECKPOINT_EVERY_MS = 20_000;
/** Held-out losses of a run. */
const VALIDATIONS = 10;
const MOST_SKIPPED = 10;
const SHOWN_EXAMPLES = 5;
/** A reader of the screen hears the loss at these parts of a run. */
const TOLD_PARTS = 4;
const LOCK = 'weft run';

class Run {
  readonly state = new Signal<RunState>({ kind: 'none' });
  readonly log = new Signal<readonly LogEntry[]>([]);
  readonly error = new Signal<RunError | undefined>(undefined);
  /** What happens within a step. */
  readonly progress = new Signal('');
  examples: readonly (readonly Piece[])[] = [];
  trainer: Trainer | undefined;
  total = 0;
  #plan: Plan | undefined;
  /** The last checkpoint of this run. */
  #kept: KeptRun | undefined;
  #cancel = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #checkpointed = 0;
  #due = false;
  #release: () => void = () => {};

  get running(): boolean {
    return this.state.value.kind === 'running';
  }

  /** Finds the run of an earlier visit. */
  async restore(): Promise<void> {
    const run = await keptRun();
    if (run === undefined || this.state.value.kind !== 'none') return;
    this.total = run.total;
    this.log.value = run.log;
    this.state.value = { kind: 'kept', run };
  }

  /** Makes the trainer, which checks every line and tells what the run takes. */
  async check(split: Split, options: RunOptions): Promise<boolean> {
    await this.close();
    this.error.value = undefined;
    this.log.value = [];
    this.state.value = { kind: 'checking' };
    this.#plan = { split, options };
    this.#kept = undefined;
    try {
      await this.#open();
      this.state.value = { kind: 'ready' };
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  async #open(): Promise<void> {
    const { ready } = host;
    const plan = this.#plan;
    if (ready === undefined || plan === undefined) throw new Error('load a model first');
    const { learnt, heldOut } = plan.split;
    const options = { ...trainOptions(plan.options), data: joined(learnt) };
    this.trainer = await host.exclusive(() =>
      ready.model.trainer(heldOut.length > 0 ? { ...options, validation: joined(heldOut) } : options),
    );
    const { steps } = this.trainer.facts.options;
    this.total = typeof steps === 'number' ? steps : this.trainer.facts.stepsPerEpoch;
    this.examples = await this.trainer.examples(SHOWN_EXAMPLES);
  }

  #fail(error: unknown): void {
    const line = lineOf(error);
    // The engine counts the lines that it got. The person counts the lines of the file.
    const original = line === undefined ? undefined : this.#plan?.split.learnt[line - 1]?.line;
    this.error.value = { sentence: sentenceOf(error), ...(original !== undefined && { line: original }) };
    announce(this.error.value.sentence);
    this.state.value = this.trainer === undefined ? { kind: 'none' } : { kind: 'stopped' };
  }

  /** Goes on with the run of an earlier visit. */
  async goOn(run: KeptRun): Promise<void> {
    const { ready } = host;
    this.error.value = undefined;
    if (ready?.model.info.digest !== run.model.digest) {
      this.error.value = { sentence: `This run belongs to ${run.model.name}: load this model, then go on.` };
      return;
    }
    this.state.value = { kind: 'checking' };
    this.#plan = { split: run, options: run.options };
    this.#kept = run;
    try {
      const checkpoint = await keptCheckpoint(run);
      if (checkpoint === undefined) throw new Error('the browser has deleted the checkpoint; start the run again');
      await this.#open();
      await this.trainer!.restore(checkpoint);
      this.log.value = run.log.filter(({ step }) => step <= run.step);
    } catch (error) {
      await this.#closeTrainer();
      this.error.value = { sentence: sentenceOf(error) };
      this.state.value = { kind: 'kept', run };
      return;
    }
    await this.start();
  }

  async start(): Promise<void> {
    if (this.trainer === undefined || this.running) return;
    if (!(await this.#lock())) {
      this.error.value = { sentence: 'Another tab teaches: stop its run first.' };
      return;
    }
    this.error.value = undefined;
    this.#cancel = new AbortController();
    this.state.value = { kind: 'running' };
    announce('The run has started.');
    this.#ended = this.#untilEnd();
    await this.#ended;
  }

  /** One run at a time keeps its checkpoint, whichever tab it is in. */
  async #lock(): Promise<boolean> {
    if (!('locks' in navigator)) return true;
    return new Promise((resolve) => {
      void navigator.locks.request(LOCK, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock === null ? undefined : new Promise<void>((release) => (this.#release = release));
      });
    });
  }

  /** Ends after the work that cannot be cut, with a checkpoint. */
  async stop(): Promise<void> {
    this.#cancel.abort();
    await this.#ended;
  }

  /** Asks for a checkpoint behind this step: the page may be about to go. */
  checkpointSoon(): void {
    this.#due = true;
  }

  async #untilEnd(): Promise<void> {
    this.#checkpointed = performance.now();
    try {
      await this.#steps();
      await this.#keep();
      const done = this.#step() >= this.total;
      this.state.value = { kind: done ? 'done' : 'stopped' };
      announce(done ? 'The run has ended.' : `The run was stopped after step ${this.#step()}.`);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.progress.value = '';
      this.#release();
    }
  }

  #step(): number {
    return this.log.value.at(-1)?.step ?? 0;
  }

  async #steps(): Promise<void> {
    let skipped = 0;
    while (this.#step() < this.total) {
      let result: StepResult;
      try {
        result = await this.#one();
      } catch (error) {
        if (isCancelled(error) || this.#cancel.signal.aborted) return;
        await this.#afterLoss(error);
        continue;
      }
      skipped = result.skipped ? skipped + 1 : 0;
      if (skipped >= MOST_SKIPPED) {
        throw new Error(`${MOST_SKIPPED} steps in a row had a loss that is no number; take a smaller rate`);
      }
      await this.#measure(result);
      if (this.#due || performance.now() - this.#checkpointed > CHECKPOINT_EVERY_MS) await this.#keep();
    }
  }

  #one(): Promise<StepResult> {
    const { signal } = this.#cancel;
    return host.exclusive(async () => {
      signal.throwIfAborted();
      return this.trainer!.step({
        signal,
        onProgress: ({ done, total }) => {
          this.progress.value = total > 0 ? `${Math.round((100 * done) / total)}% of the step` : '';
        },
      });
    });
  }

  /** Adds the step to the log, with the held-out loss where it is due. */
  async #measure({ number, loss, norm, rate }: StepResult): Promise<void> {
    const every = Math.max(1, Math.round(this.total / VALIDATIONS));
    const due = this.#plan!.split.heldOut.length > 0 && (number === 1 || number % every === 0 || number === this.total);
    const validation = due ? (await host.exclusive(() => this.trainer!.evaluate())).loss : undefined;
    this.log.value = [
      ...this.log.value,
      { step: number, loss, norm, rate, ...(validation !== undefined && { validation }) },
    ];
    if (number % Math.max(1, Math.round(this.total / TOLD_PARTS)) === 0) {
      announce(`Step ${number} of ${this.total}, loss ${digits(loss)}.`);
    }
  }

  async #keep(): Promise<void> {
    const { ready } = host;
    if (ready === undefined || this.trainer === undefined || this.log.value.length === 0) return;
    const { digest } = ready.model.info;
    const { name, origin } = ready.choice;
    const { split, options } = this.#plan!;
    const checkpoint = await host.exclusive(() => this.trainer!.checkpoint());
    const { learnt, heldOut } = split;
    const model = { name, digest, ...(origin && { origin }) };
    const kept = { model, learnt, heldOut, options, total: this.total, log: this.log.value, step: this.#step() };
    await keepRun(kept, checkpoint);
    this.#kept = kept;
    this.#checkpointed = performance.now();
    this.#due = false;
  }

  /** Goes back to the last checkpoint if the error is a loss of the device or of the worker. */
  async #afterLoss(error: unknown): Promise<void> {
    if (!(await host.recover(error, 'the run goes on from its last checkpoint'))) throw error;
    await this.trainer?.close().catch((failed: unknown) => console.warn(failed));
    await this.#open();
    const kept = this.#kept;
    const checkpoint = kept && (await keptCheckpoint(kept));
    if (checkpoint) await this.trainer!.restore(checkpoint);
    this.log.value = kept && checkpoint ? kept.log : [];
  }

  /** The factors as they are now, between two steps. */
  peft(): Promise<NamedBytes[]> {
    return host.exclusive(() => this.trainer!.savePeft());
  }

  gguf(): Promise<Uint8Array> {
    return host.exclusive(() => this.trainer!.saveGguf());
  }

  async #closeTrainer(): Promise<void> {
    const { trainer } = this;
    this.trainer = undefined;
    this.examples = [];
    await trainer?.close();
  }

  /** Stops, keeps and closes. The kept run stays. */
  async close(): Promise<void> {
    await this.stop();
    await this.#closeTrainer();
    this.state.value = { kind: 'none' };
  }

  /** Forgets the run and its checkpoint. */
  async forget(): Promise<void> {
    await this.close();
    await forgetRun();
    this.log.value = [];
  }
}

export const run = new Run();

host.beforeLeaving.add(async () => {
  if (run.trainer === undefined) return;
  await run.close();
  await run.restore();
});
document.addEventListener('visibilitychange', () => document.hidden && run.checkpointSoon());
