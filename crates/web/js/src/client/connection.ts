/** The worker, and the calls that wait for it. */
import { type PlainError, WeftError, aborted, asWeftError } from '../error.js';
import { type Args, type EventName, type FromWorker, HOST, type Handle, type HostMethods, type Methods, type Result, type ToWorker } from '../protocol.js';
import type { Token, Work } from '../types.js';

export interface Hooks extends Work {
  readonly onToken?: (token: Token) => void;
}

interface Pending {
  readonly hooks: Hooks;
  resolve(value: unknown): void;
  reject(error: WeftError): void;
}

export type Listener = (name: EventName, error: WeftError | undefined) => void;

/** WebAssembly memory never shrinks: a worker with more ends when its last object is closed. */
const KEPT_WASM_BYTES = 256 << 20;

/** One worker. After it was lost, `connect` starts another. */
export class Connection {
  readonly #worker: Worker;
  readonly #calls = new Map<number, Pending>();
  readonly #objects = new Map<Handle, Listener>();
  readonly #watch = new AbortController();
  #ids = 0;
  #lost: WeftError | undefined;

  constructor() {
    this.#worker = new Worker(new URL('../worker.js', import.meta.url), { type: 'module', name: 'weft' });
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.#receive(data);
    this.#worker.onmessageerror = () => this.#lose('a message could not be read');
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#lose(event.message || 'its script could not be loaded');
    };
  }

  get lost(): boolean {
    return this.#lost !== undefined;
  }

  /**
   * Calls a method of an object in the worker. An abort is told to the worker, which then answers.
   */
  async call<M extends Methods<M>, K extends keyof M & string>(target: Handle, method: K, args: Args<M, K>, hooks: Hooks = {}): Promise<Result<M, K>> {
    if (this.#lost) throw this.#lost;
    const { signal } = hooks;
    if (signal?.aborted) throw aborted();
    const id = ++this.#ids;
    const answer = new Promise<unknown>((resolve, reject) => this.#calls.set(id, { hooks, resolve, reject }));
    const cancel = () => this.#send({ type: 'cancel', id });
    signal?.addEventListener('abort', cancel);
    try {
      this.#send({ type: 'call', id, target, method, args });
      return (await answer) as Result<M, K>;
    } catch (error) {
      throw asWeftError(error);
    } finally {
      signal?.removeEventListener('abort', cancel);
      this.#calls.delete(id);
    }
  }

  /** Keeps an object of the worker, until `drop`. */
  keep(handle: Handle, listener: Listener = () => {}): void {
    this.#objects.set(handle, listener);
  }

  /** Forgets a closed object. `wasm` is the memory that the worker has. */
  drop(handle: Handle, wasm: number): void {
    this.#objects.delete(handle);
    if (wasm > KEPT_WASM_BYTES && this.#objects.size === 0 && this.#calls.size === 0) {
      this.#end(new WeftError('closed', 'the object was closed; load the model again'));
    }
  }

  /** Frees an object that the page has no reference to. */
  free(handle: Handle): void {
    if (this.lost || !this.#objects.delete(handle)) return;
    this.#send({ type: 'free', target: handle });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case 'ready':
        if (message.lock !== undefined) void this.#watchLock(message.lock);
        break;
      case 'result':
        this.#calls.get(message.id)?.resolve(message.value);
        break;
      case 'error':
        this.#calls.get(message.id)?.reject(asWeftError(message.error));
        break;
      case 'progress':
        this.#calls.get(message.id)?.hooks.onProgress?.(message.progress);
        break;
      case 'token':
        this.#calls.get(message.id)?.hooks.onToken?.(message.token);
        break;
      case 'event':
        this.#objects.get(message.target)?.(message.name, errorOf(message.error));
        break;
      case 'fatal':
        this.#lose(message.reason);
    }
  }

  /** The worker's lock is free only when the worker has ended, however it ended. */
  async #watchLock(name: string): Promise<void> {
    try {
      await navigator.locks.request(name, { signal: this.#watch.signal }, () => this.#lose('the browser ended it'));
    } catch {
      // The watch was ended: the worker was lost in another way.
    }
  }

  #lose(reason: string): void {
    const way = 'load the model again; if it ends again, take a smaller model or a shorter context';
    this.#end(new WeftError('worker-lost', `the worker of the engine ended (${reason}); ${way}`, { reason }));
  }

  #end(error: WeftError): void {
    if (this.#lost) return;
    this.#lost = error;
    this.#watch.abort();
    this.#worker.terminate();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#objects.clear();
  }
}

function errorOf(error: PlainError | undefined): WeftError | undefined {
  return error && asWeftError(error);
}

let current: Connection | undefined;

/** The worker that runs, or a new one. */
export function connect(): Connection {
  if (current === undefined || current.lost) current = new Connection();
  return current;
}

/** Calls a method of the worker itself. */
export function callHost<K extends keyof HostMethods>(method: K, args: Args<HostMethods, K>, hooks?: Hooks): Promise<Result<HostMethods, K>> {
  return connect().call<HostMethods, K>(HOST, method, args, hooks);
}
