/** One call from the page while it runs. */
import type { Cancel, Engine, Model } from '../engine.js';
import { aborted } from '../error.js';
import type { FromWorker } from '../protocol.js';
import type { Progress, Token } from '../types.js';

/** Milliseconds between two messages of progress. */
const PROGRESS_MS = 50;
/** Milliseconds between two looks at what is compiled. */
const COMPILE_MS = 200;

type Post = (message: FromWorker) => void;

export class Call {
  readonly #controller = new AbortController();
  readonly #id: number;
  readonly #post: Post;
  #told = 0;
  #phase: Progress['phase'] | undefined;

  constructor(id: number, post: Post) {
    this.#id = id;
    this.#post = post;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  cancel(): void {
    this.#controller.abort();
  }

  /** An error if the call was cancelled. */
  check(): void {
    if (this.signal.aborted) throw aborted();
  }

  readonly report = (progress: Progress): void => {
    const now = performance.now();
    const isLast = progress.done >= progress.total && progress.total > 0;
    if (!isLast && progress.phase === this.#phase && now - this.#told < PROGRESS_MS) return;
    this.#told = now;
    this.#phase = progress.phase;
    this.#post({ type: 'progress', id: this.#id, progress });
  };

  readonly token = (token: Token): void => {
    this.#post({ type: 'token', id: this.#id, token });
  };

  /** Runs work of the engine that can be cancelled, and tells meanwhile how many kernels of `model` are compiled. */
  async cancellable<T>(engine: Engine, model: Model, work: (cancel: Cancel) => Promise<T>): Promise<T> {
    const tell = () => {
      const { done, total } = model.compiled();
      if (done < total) this.report({ phase: 'compile', done, total });
    };
    const telling = setInterval(tell, COMPILE_MS);
    try {
      return await this.stoppable(engine, work);
    } finally {
      clearInterval(telling);
    }
  }

  /** Runs work of the engine that can be cancelled. */
  async stoppable<T>(engine: Engine, work: (cancel: Cancel) => Promise<T>): Promise<T> {
    const cancel = new engine.Cancel();
    const stop = () => cancel.cancel();
    if (this.signal.aborted) stop();
    this.signal.addEventListener('abort', stop);
    try {
      return await work(cancel);
    } finally {
      this.signal.removeEventListener('abort', stop);
      cancel.free();
    }
  }
}
