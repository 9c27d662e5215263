/** A run of training: checked, stepped, kept, and gone on with after a reload or a lost device. */
import type { Ended, NamedBytes, Piece, Progress, StepRecord, StepResult } from '@weft-llm/web';
import type { Trainer, Work } from '../engine/api.js';
import { isCancelled, sentenceOf } from '../engine/errors.js';
import { host } from '../models/host.js';
import { announce } from '../ui/announce.js';
import { digits } from '../ui/format.js';
import { tellError } from '../ui/notice.js';
import { describeProgress } from '../ui/progress.js';
import { Signal } from '../ui/signal.js';
import { forgetRun, keepRun, keptCheckpoint, keptRun, type KeptRun } from './kept.js';
import { joined, refusalOf, type Refusal, type Split } from './lines.js';
import { trainOptions, type RunOptions } from './options.js';

export type RunState =
  | { readonly kind: 'none' | 'checking' }
  | { readonly kind: 'kept'; readonly run: KeptRun }
  | { readonly kind: 'ready' | 'running' | 'stopped' }
  | { readonly kind: 'done'; readonly ended: Ended };

interface Plan {
  readonly split: Split;
  readonly options: RunOptions;
}

const CHECKPOINT_EVERY_MS = 20_000;
const SHOWN_EXAMPLES = 5;
/** A reader of the screen hears the loss at these parts of a run. */
const TOLD_PARTS = 4;
const LOCK = 'weft run';

class Run {
  readonly state = new Signal<RunState>({ kind: 'none' });
  /** The steps, as the trainer tells them. */
  readonly log = new Signal<readonly StepRecord[]>([]);
  readonly error = new Signal<Refusal | undefined>(undefined);
  /** What happens now. */
  readonly progress = new Signal('');
  /** Whether steps are done that no checkpoint has. */
  readonly unkept = new Signal(false);
  examples: readonly (readonly Piece[])[] = [];
  /** Examples that the trainer leaves out: too long, or nothing to learn. */
  leftOut = 0;
  trainer: Trainer | undefined;
  total = 0;
  /** Seconds of a step, of late; 0 before the first. */
  pace = 0;
  #plan: Plan | undefined;
  /** The last checkpoint of this run. */
  #kept: KeptRun | undefined;
  #cancel = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #checkpointed = 0;
  #keepFailed = false;
  #due = false;
  #release: () => void = () => {};

  get running(): boolean {
    return this.state.value.kind === 'running';
  }

  /** Whether a new run takes the place of a kept one. */
  async replaces(): Promise<boolean> {
    return (await keptRun()) !== undefined;
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
    this.pace = 0;
    this.#kept = undefined;
    this.unkept.value = false;
    try {
      await this.#open();
      this.state.value = { kind: 'ready' };
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    } finally {
      this.progress.value = '';
    }
  }

  async #open(): Promise<void> {
    const { ready } = host;
    const plan = this.#plan;
    if (ready === undefined || plan === undefined) throw new Error('load a model first');
    const { learnt, heldOut } = plan.split;
    const given = { ...trainOptions(plan.options), data: joined(learnt) };
    // Without validation lines the trainer holds out its own share of many examples.
    const held = heldOut.length > 0 ? { validation: joined(heldOut) } : { holdOut: plan.options.heldOut !== 0 };
    const options = { ...given, ...held };
    const onProgress = (progress: Progress) => {
      this.progress.value = describeProgress(progress);
    };
    this.trainer = await host.exclusive(() => ready.model.trainer(options, { onProgress }));
    const { steps, examples, validation } = this.trainer.facts;
    this.total = steps;
    this.leftOut = learnt.length + heldOut.length - examples - validation;
    this.examples = await this.trainer.examples(SHOWN_EXAMPLES);
  }

  #fail(error: unknown): void {
    this.error.value = refusalOf(error, this.#plan?.split);
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
      this.log.value = await this.trainer!.log();
    } catch (error) {
      await this.#closeTrainer();
      this.error.value = { sentence: sentenceOf(error) };
      this.state.value = { kind: 'kept', run };
      return;
    } finally {
      this.progress.value = '';
    }
    this.unkept.value = false;
    if (run.ended === null) return this.start();
    this.state.value = { kind: 'done', ended: run.ended };
  }

  async start(): Promise<void> {
    if (this.trainer === undefined || this.running) return;
    if (!(await this.#lock())) {
      this.error.value = { sentence: 'Another tab teaches: stop its run first.' };
      return;
    }
    this.error.value = undefined;
    this.#keepFailed = false;
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
      const ended = await this.#steps();
      await this.#keep(ended);
      this.state.value = ended === null ? { kind: 'stopped' } : { kind: 'done', ended };
      announce(ended === null ? `The run was stopped after step ${this.#step()}.` : describeEnd(ended));
    } catch (error) {
      this.#fail(error);
    } finally {
      this.progress.value = '';
      this.#release();
    }
  }

  #step(): number {
    return this.log.value.at(-1)?.number ?? 0;
  }

  /** Steps until the trainer says that the run has ended, or the person stops it. */
  async #steps(): Promise<Ended | null> {
    for (;;) {
      try {
        const result = await this.#one();
        const ended = result.validates ? await this.#evaluate(result) : result.ended;
        this.#tell(result);
        if (ended !== null) return ended;
      } catch (error) {
        if (isCancelled(error) || this.#cancel.signal.aborted) return null;
        await this.#afterLoss(error);
        continue;
      }
      if (this.#due || performance.now() - this.#checkpointed > CHECKPOINT_EVERY_MS) await this.#keep(null);
    }
  }

  /** Does a part of a step when no answer is under way. */
  #work<T>(step: number, what: string, work: (options: Work) => Promise<T>): Promise<T> {
    const { signal } = this.#cancel;
    const tellPart = (part: string) => {
      this.progress.value = [`Step ${step} of ${this.total}`, what, part].filter(Boolean).join(', ');
    };
    const onProgress = (progress: Progress) => {
      const { phase, done, total } = progress;
      if (phase !== 'step') tellPart(describeProgress(progress).toLowerCase());
      // The layers pass several times in a step: forwards, backwards, for each part of the batch.
      else tellPart(total > 0 ? `layer ${done} of ${total}` : '');
    };
    tellPart('waits for its turn');
    return host.exclusive(() => {
      signal.throwIfAborted();
      tellPart('');
      return work({ signal, onProgress });
    });
  }

  async #one(): Promise<StepResult> {
    const result = await this.#work(this.#step() + 1, '', (work) => this.trainer!.step(work));
    const { number, loss, norm, rate, tokens, validation, skipped, seconds } = result;
    this.pace = this.pace === 0 ? seconds : this.pace + (seconds - this.pace) / 8;
    this.log.value = [...this.log.value, { number, loss, norm, rate, tokens, validation, skipped }];
    this.unkept.value = true;
    return result;
  }

  /** Measures the held-out loss after a step. A stop cuts it, and does not undo the end of a run. */
  async #evaluate({ number, ended }: StepResult): Promise<Ended | null> {
    try {
      const found = await this.#work(number, 'held-out examples', (work) => this.trainer!.evaluate(undefined, work));
      const earlier = this.log.value.slice(0, -1);
      this.log.value = [...earlier, { ...this.log.value.at(-1)!, validation: found.loss }];
      return found.ended;
    } catch (error) {
      if (ended === null || !isCancelled(error)) throw error;
      return ended;
    }
  }

  #tell({ number, loss }: StepResult): void {
    if (number % Math.max(1, Math.round(this.total / TOLD_PARTS)) !== 0) return;
    announce(`Step ${number} of ${this.total}, loss ${digits(loss)}.`);
  }

  /** Keeps a checkpoint. A browser without space for one does not end the run. */
  async #keep(ended: Ended | null): Promise<void> {
    const { ready } = host;
    if (ready === undefined || this.trainer === undefined || this.log.value.length === 0) return;
    const { digest } = ready.model.info;
    const { name, origin } = ready.choice;
    const { split, options } = this.#plan!;
    const checkpoint = await host.exclusive(() => this.trainer!.checkpoint());
    const model = { name, digest, ...(origin && { origin }) };
    const kept = { model, ...split, options, total: this.total, log: this.log.value, step: this.#step(), ended };
    this.#checkpointed = performance.now();
    this.#due = false;
    try {
      await keepRun(kept, checkpoint);
      this.#kept = kept;
      this.unkept.value = false;
    } catch (error) {
      if (!this.#keepFailed) tellError(error);
      this.#keepFailed = true;
    }
  }

  /** Goes back to the last checkpoint if the error is a loss of the device or of the worker. */
  async #afterLoss(error: unknown): Promise<void> {
    if (!(await host.recover(error, 'the run goes on from its last checkpoint'))) throw error;
    await this.trainer?.close().catch((failed: unknown) => console.warn(failed));
    await this.#open();
    const kept = this.#kept;
    const checkpoint = kept && (await keptCheckpoint(kept));
    if (checkpoint) await this.trainer!.restore(checkpoint);
    this.log.value = checkpoint ? await this.trainer!.log() : [];
    this.unkept.value = false;
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
    this.unkept.value = false;
    this.state.value = { kind: 'none' };
  }

  /** Forgets the run and its checkpoint. */
  async forget(): Promise<void> {
    await this.close();
    await forgetRun();
    this.log.value = [];
  }
}

/** The end of a run in a sentence. */
export function describeEnd(ended: Ended): string {
  return {
    steps: 'The run has ended.',
    flat: 'The run has ended: the loss gets no better.',
    patience: 'The run has ended: the held-out loss gets no better.',
    risen: 'The run was given up: the loss is far above that of the first step. Take a smaller rate.',
  }[ended];
}

export const run = new Run();

host.beforeLeaving.add(async () => {
  if (run.trainer === undefined) return;
  await run.close();
  await run.restore();
});
