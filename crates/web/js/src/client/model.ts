/** A loaded model, and a model that was only looked at. */
import type { WeftError } from '../error.js';
import { HOST, type HostMethods, type InspectionMethods, type Made, type ModelMethods } from '../protocol.js';
import type { BatchOptions, LoadOptions, MemoryUse, Message, ModelInfo, NamedBytes, Needs, RenderOptions, SessionOptions, Source, TokenizeOptions, TrainOptions, Work } from '../types.js';
import { Adapter, sentAdapters } from './adapter.js';
import { Batch } from './batch.js';
import { bytesOf, namedBytes } from './bytes.js';
import { type Connection, callHost, connect } from './connection.js';
import { Remote } from './remote.js';
import { Session } from './session.js';
import { openRequest } from './source.js';
import { Trainer } from './trainer.js';

/** The header, tokenizer and template of a file. No weights are loaded, and none downloaded. */
export class Inspection extends Remote<InspectionMethods> {
  /** `digest` is empty: only the weights tell it. */
  readonly info: ModelInfo;

  /** @internal */
  constructor(connection: Connection, { handle, facts }: Made<ModelInfo>) {
    super('inspection', connection, handle);
    this.info = facts;
  }

  /** Bytes that the model and a session with these options need. */
  needs(options: SessionOptions = {}): Promise<Needs> {
    const { adapters: _adapters, ...plain } = options;
    return this.call('needs', [plain]);
  }

  /** Loads the weights. The inspection is then closed. */
  async load(work?: Work): Promise<Model> {
    const made = await this.call('load', [], work);
    const model = new Model(this.connection, made);
    await this.close();
    return model;
  }
}

/** The events of a model, with what happened. */
export interface ModelEventMap {
  /** The GPU is gone. `detail` is the error that the running call got, if a call ran. */
  devicelost: CustomEvent<WeftError | undefined>;
  /** The model is loaded again. Sessions go on with their tokens. Trainers are made anew. */
  devicerestored: CustomEvent<undefined>;
}

export class Model extends Remote<ModelMethods> {
  readonly info: ModelInfo;
  readonly #events: EventTarget;

  /** @internal */
  constructor(connection: Connection, { handle, facts }: Made<ModelInfo>) {
    const events = new EventTarget();
    super('model', connection, handle, undefined, (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail })));
    this.#events = events;
    this.info = facts;
  }

  /** Loads a model. `'default'` is the model that comes with the package. */
  static async load(source: Source, options: LoadOptions = {}): Promise<Model> {
    const connection = connect();
    const made = await connection.call<HostMethods, 'load'>(HOST, 'load', [openRequest(source, options)], options);
    return new Model(connection, made);
  }

  /** Reads the header of a model, which tells what it is and how much memory it needs. */
  static async inspect(source: Source, options: LoadOptions = {}): Promise<Inspection> {
    const connection = connect();
    const made = await connection.call<HostMethods, 'inspect'>(HOST, 'inspect', [openRequest(source, options)], options);
    return new Inspection(connection, made);
  }

  addEventListener<K extends keyof ModelEventMap>(type: K, listener: (event: ModelEventMap[K]) => void, options?: AddEventListenerOptions): void {
    this.#events.addEventListener(type, listener as EventListener, options);
  }

  removeEventListener<K extends keyof ModelEventMap>(type: K, listener: (event: ModelEventMap[K]) => void): void {
    this.#events.removeEventListener(type, listener as EventListener);
  }

  /** Bytes that the model and a session or a batch with these options need. */
  needs(options: SessionOptions | BatchOptions = {}): Promise<Needs> {
    const { adapters: _adapters, ...plain } = options;
    return this.call('needs', [plain]);
  }

  /** A new conversation. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const { adapters = [], ...plain } = options;
    return new Session(this.connection, await this.call('session', [plain, sentAdapters(adapters, this)]), this);
  }

  /** Several sequences that share every step. */
  async batch(options: BatchOptions): Promise<Batch> {
    const { adapters = [], ...plain } = options;
    return new Batch(this.connection, await this.call('batch', [plain, sentAdapters(adapters, this)]), this);
  }

  /** Loads an adapter: PEFT's two files, or a GGUF file. */
  async adapter(files: readonly (NamedBytes | File)[]): Promise<Adapter> {
    return new Adapter(this.connection, await this.call('adapter', [await namedBytes(files)]), this);
  }

  /** Prepares the training of an adapter. */
  async trainer(options: TrainOptions, work?: Work): Promise<Trainer> {
    const { data, validation, method: { init, ...method } = {}, ...plain } = options;
    const bytes = {
      data: await bytesOf(data),
      ...(validation !== undefined && { validation: await bytesOf(validation) }),
      ...(init !== undefined && { init: await namedBytes(init) }),
    };
    return new Trainer(this.connection, await this.call('trainer', [{ ...plain, method, ...bytes }], work), this);
  }

  /** The ids of a text. */
  tokenize(text: string, options: TokenizeOptions = {}): Promise<Uint32Array> {
    return this.call('tokenize', [text, options]);
  }

  /** The text of ids. */
  detokenize(ids: ArrayLike<number>): Promise<string> {
    return this.call('detokenize', [Uint32Array.from(ids)]);
  }

  /** The prompt that a conversation becomes. */
  render(messages: readonly Message[], options: RenderOptions = {}): Promise<string> {
    return this.call('render', [messages, options]);
  }

  /** The names of the inner values that a session can tap. */
  taps(): Promise<string[]> {
    return this.call('taps', []);
  }

  /** Memory that the engine has in use for all models of the page. */
  memory(): Promise<MemoryUse> {
    return callHost('memory', []);
  }
}
