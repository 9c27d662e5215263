/** What all objects of the page have that stand for an object in the worker. */
import { WeftError } from '../error.js';
import type { Args, Closed, Handle, Methods, Result } from '../protocol.js';
import type { Connection, Hooks, Listener } from './connection.js';

interface Held {
  readonly connection: Connection;
  readonly handle: Handle;
}

/** Frees what was not closed. */
const forgotten = new FinalizationRegistry<Held>(({ connection, handle }) => connection.free(handle));

export abstract class Remote<M extends Methods<M> & { close(): Closed }> {
  readonly #held: Held;
  readonly #kind: string;
  /** The model that the object belongs to, which is not freed before the object. */
  readonly #owner: object | undefined;
  #closing: Promise<void> | undefined;

  /** @internal */
  protected constructor(kind: string, connection: Connection, handle: Handle, owner?: object, listener?: Listener) {
    this.#kind = kind;
    this.#owner = owner;
    this.#held = { connection, handle };
    connection.keep(handle, listener);
    forgotten.register(this, this.#held, this);
  }

  /** @internal */
  get handle(): Handle {
    return this.#held.handle;
  }

  /** @internal */
  get owner(): object | undefined {
    return this.#owner;
  }

  /** @internal */
  protected get connection(): Connection {
    return this.#held.connection;
  }

  /** @internal */
  protected async call<K extends keyof M & string>(method: K, args: Args<M, K>, hooks?: Hooks): Promise<Result<M, K>> {
    if (this.#closing) throw new WeftError('closed', `the ${this.#kind} was closed; make a new one`);
    return this.#held.connection.call<M, K>(this.handle, method, args, hooks);
  }

  /** Stops what runs on the object, and frees it. A second call waits for the first. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const { connection, handle } = this.#held;
    forgotten.unregister(this);
    // A worker that was lost has freed everything.
    if (connection.lost) return;
    const none = [] as unknown as Args<M, 'close'>;
    const { wasm } = (await connection.call<M, 'close'>(handle, 'close', none)) as Closed;
    connection.drop(handle, wasm);
  }
}
