/** The model of the page and its session: loaded, exchanged, brought back after a lost device. */
import type { Progress, SessionOptions } from '@weft-llm/web';
import type { Adapter, Model, Session } from '../engine/api.js';
import { isCancelled, lossOf, sentenceOf } from '../engine/errors.js';
import { engine } from '../engine/index.js';
import { settings } from '../store/settings.js';
import { Kept } from '../store/values.js';
import { Signal } from '../ui/signal.js';
import { tell } from '../ui/notice.js';
import { rememberModel, type Choice } from './recent.js';

export type State =
  | { readonly kind: 'none' }
  | { readonly kind: 'loading'; readonly choice: Choice; readonly progress?: Progress }
  | { readonly kind: 'ready'; readonly choice: Choice; readonly model: Model; readonly session: Session }
  | { readonly kind: 'failed'; readonly choice: Choice; readonly sentence: string; readonly earlier?: Choice };

export interface LoadedAdapter {
  readonly name: string;
  readonly adapter: Adapter;
  readonly scale: number;
}

/** Names the model while it loads: a tab that dies meanwhile must not load this model again. */
const loading = new Kept<string | undefined>('loading', undefined);

export const interruptedLoad = () => loading.get();

const DEFAULT_CONTEXT = 8192;

class Host {
  readonly state = new Signal<State>({ kind: 'none' });
  readonly adapters = new Signal<readonly LoadedAdapter[]>([]);
  /** Work that must end before another model takes the place of this one. */
  readonly beforeLeaving = new Set<() => Promise<void>>();
  #cancel = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();

  get ready(): Extract<State, { kind: 'ready' }> | undefined {
    return this.state.value.kind === 'ready' ? this.state.value : undefined;
  }

  /**
   * Gives the model to one piece of work at a time: an answer and the steps of a run take turns,
   * in the order in which they asked.
   */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  /** The options of a session of this model. */
  sessionOptions(model: Model): SessionOptions {
    const { context, kv } = settings.value;
    return {
      context: Math.min(context ?? DEFAULT_CONTEXT, model.info.contextLength),
      ...(kv !== undefined && { kv }),
    };
  }

  /** What a snapshot depends on. */
  snapshotKey(model: Model): string {
    const { context, kv } = this.sessionOptions(model);
    const adapters = this.adapters.value.map(({ name, scale }) => `${name}*${scale}`);
    return [model.info.digest, model.info.executor, context, kv ?? '', ...adapters].join(' ');
  }

  /** Loads a model in place of the one that is there. An error becomes a state. */
  async load(choice: Choice): Promise<void> {
    await Promise.all([...this.beforeLeaving].map((end) => end()));
    await this.#exchange(choice);
  }

  async #exchange(choice: Choice): Promise<void> {
    this.#cancel.abort();
    const cancel = new AbortController();
    this.#cancel = cancel;
    const before = this.state.value;
    const earlier = before.kind === 'ready' ? before.choice : before.kind === 'failed' ? before.earlier : undefined;
    const show = (progress?: Progress) => {
      if (!cancel.signal.aborted) this.state.value = { kind: 'loading', choice, ...(progress && { progress }) };
    };
    show();
    await this.#close(before);
    await loading.set(choice.name);
    let model: Model | undefined;
    try {
      model = await engine.Model.load(choice.source, {
        device: settings.value.device ?? 'auto',
        signal: cancel.signal,
        onProgress: show,
        ...(choice.sha256 !== undefined && { sha256: choice.sha256 }),
      });
      const session = await model.session(this.sessionOptions(model));
      cancel.signal.throwIfAborted();
      this.state.value = { kind: 'ready', choice, model, session };
      for (const note of model.info.notes) tell(note);
      await rememberModel(choice);
    } catch (error) {
      await model?.close();
      if (this.#cancel !== cancel) return;
      const sentence = isCancelled(error) ? 'The load was cancelled.' : sentenceOf(error);
      this.state.value = { kind: 'failed', choice, sentence, ...(earlier && { earlier }) };
    } finally {
      if (this.#cancel === cancel) await loading.clear();
    }
  }

  cancel(): void {
    this.#cancel.abort();
  }

  /**
   * Makes the model usable after a loss, and tells it in one line. `goesOn` ends the sentence.
   * Returns whether the work can be repeated.
   */
  async recover(error: unknown, goesOn: string): Promise<boolean> {
    const { ready } = this;
    const loss = lossOf(error);
    if (ready === undefined || loss === undefined) return false;
    const lost = loss === 'device' ? 'The graphics device was lost' : 'The worker of the engine ended';
    tell(`${lost}. The model is loaded again, and ${goesOn}.`);
    // The package loads the model again by itself; the next call waits for it.
    if (loss === 'device') return true;
    const adapters = this.adapters.value.length;
    await this.#exchange(ready.choice);
    if (adapters > 0) tell('The adapters are gone with the worker; add them again.');
    return this.state.value.kind === 'ready';
  }

  /** Makes the session anew, for another context or another type of the cache. */
  async renewSession(): Promise<void> {
    const { ready } = this;
    if (ready === undefined) return;
    await this.exclusive(async () => {
      await ready.session.close();
      try {
        const session = await ready.model.session(this.sessionOptions(ready.model));
        this.state.value = { ...ready, session };
        await this.#apply();
      } catch (error) {
        await ready.model.close();
        this.state.value = { kind: 'failed', choice: ready.choice, sentence: sentenceOf(error) };
      }
    });
  }

  async addAdapter(name: string, files: { name: string; bytes: Uint8Array }[]): Promise<void> {
    const { ready } = this;
    if (ready === undefined) throw new Error('load the model that the adapter belongs to first');
    const adapter = await ready.model.adapter(files);
    this.adapters.value = [...this.adapters.value, { name, adapter, scale: 1 }];
    await this.exclusive(() => this.#apply());
  }

  async setScale(adapter: Adapter, scale: number): Promise<void> {
    this.adapters.value = this.adapters.value.map((one) => (one.adapter === adapter ? { ...one, scale } : one));
    await this.exclusive(() => this.#apply());
  }

  async removeAdapter(adapter: Adapter): Promise<void> {
    this.adapters.value = this.adapters.value.filter((one) => one.adapter !== adapter);
    await this.exclusive(() => this.#apply());
    await adapter.close();
  }

  async #apply(): Promise<void> {
    await this.ready?.session.setAdapters(this.adapters.value.map(({ adapter, scale }) => ({ adapter, scale })));
  }

  async #close(state: State): Promise<void> {
    this.adapters.value = [];
    if (state.kind !== 'ready') return;
    try {
      await this.exclusive(() => state.model.close());
    } catch (error) {
      // A model whose device is lost may refuse to close. The next one is loaded all the same.
      console.warn(error);
    }
  }
}

export const host = new Host();
