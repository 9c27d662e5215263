/**
 * The interface of the engine: what the WebAssembly module exports. It runs in the worker. All
 * options and results are plain JSON objects of the types in `types.ts` unless a type says
 * otherwise. Errors are thrown as `EngineError`.
 */
import type * as t from './types.js';

/** A plain object: `code` is stable, the other fields depend on it. */
export interface EngineError {
  readonly code: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/**
 * Random access to the bytes of one file. The engine reads ascending ranges when it loads weights.
 */
export interface Reader {
  readonly name: string;
  readonly length: number;
  /** Exactly `length` bytes from `offset` on (at most 16 MiB at a time), or an error. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

export interface Freed {
  free(): void;
}

/** Stops the call that it was given to. It may be used again after the call has ended. */
export interface Cancel extends Freed {
  cancel(): void;
}

/** SHA-256 whose state can be kept and continued. */
export interface Hasher extends Freed {
  update(bytes: Uint8Array): void;
  /** The state after what was hashed so far. */
  state(): Uint8Array;
  /** 64 hexadecimal digits. The hasher can go on afterwards. */
  digest(): string;
}

/** Options without what belongs to the call. */
export type Plain<Options> = Omit<Options, keyof t.Work>;

export type Report = (progress: t.Progress) => void;

/** A file whose header, tokenizer and template are read and checked. No weights are loaded. */
export interface Opened extends Freed {
  /** `executor`, `adapter` and `digest` are of the device that was asked for. */
  info(): t.ModelInfo;
  needs(options: t.SessionOptions): t.Needs;
  /** Loads the weights. The object is used up, also by an error. */
  load(report: Report, cancel: Cancel): Promise<Model>;
}

export interface Model extends Freed {
  info(): t.ModelInfo;
  needs(options: t.SessionOptions): t.Needs;
  session(options: Omit<t.SessionOptions, 'adapters'>): Promise<Session>;
  batch(options: Omit<t.BatchOptions, 'adapters'>): Promise<Batch>;
  adapter(files: t.NamedBytes[]): Promise<Adapter>;
  trainer(options: EngineTrainOptions, report: Report, cancel: Cancel): Promise<Trainer>;
  tokenize(text: string, options: t.TokenizeOptions): Uint32Array;
  detokenize(ids: Uint32Array): string;
  render(messages: readonly t.Message[], options: t.RenderOptions): string;
  /** The names of the values that a session can tap. */
  taps(): string[];
  /** The number of kernels that are compiled, and of all that were asked for. */
  compiled(): { readonly done: number; readonly total: number };
  /** Whether the device of this model is lost. */
  lost(): boolean;
}

/** As `TrainOptions`, with texts as bytes, and with the adapter to go on from beside the method. */
export type EngineTrainOptions = Omit<t.TrainOptions, 'data' | 'validation' | 'method'> & {
  data: Uint8Array;
  validation?: Uint8Array;
  method?: Omit<NonNullable<t.TrainOptions['method']>, 'init'>;
  init?: readonly t.NamedBytes[];
};

export interface Adapter extends Freed {
  info(): t.AdapterInfo;
}

/** Adapters with their scales, in the order in which they are applied. */
export interface Adapters extends Freed {
  add(adapter: Adapter, scale: number): void;
}

export interface Session extends Freed {
  readonly context: number;
  tokens(): Uint32Array;
  /**
   * Answers a conversation. What its start shares with the tokens so far is not evaluated again.
   */
  send(
    messages: readonly t.Message[],
    options: Plain<t.AnswerOptions>,
    onToken: (token: t.Token) => void,
    report: Report,
    cancel: Cancel,
  ): Promise<t.Finish>;
  /** Goes on with a raw text instead of a conversation. */
  complete(
    text: string,
    options: Plain<t.CompleteOptions>,
    onToken: (token: t.Token) => void,
    report: Report,
    cancel: Cancel,
  ): Promise<t.Finish>;
  /**
   * Logits [tokens, vocabulary] of these ids, which replace the tokens of the session, and the
   * values of its taps.
   */
  logits(ids: Uint32Array, cancel: Cancel): Promise<t.Logits>;
  setAdapters(adapters: Adapters): void;
  rollback(tokens: number): void;
  save(): Promise<Uint8Array>;
  load(bytes: Uint8Array): Promise<void>;
  /**
   * Goes on with another handle of the same model after its device was lost, and with adapters that
   * were loaded beside it.
   */
  moveTo(model: Model, adapters: Adapters): Promise<void>;
}

/** Several sequences that share every step. */
export interface Batch extends Freed {
  readonly context: number;
  readonly sequences: number;
  tokens(sequence: number): Uint32Array;
  feed(sequence: number, ids: Uint32Array): void;
  rollback(sequence: number, tokens: number): void;
  step(sampling: t.Sampling | readonly t.Sampling[], cancel: Cancel): Promise<t.Drawn[]>;
  setAdapters(adapters: Adapters): void;
  moveTo(model: Model, adapters: Adapters): Promise<void>;
}

export interface Trainer extends Freed {
  facts(): t.TrainFacts;
  memory(): t.TrainMemory;
  /** The first examples as the model reads them. */
  examples(count: number): t.Piece[][];
  /** The records of all steps, those before a checkpoint too. */
  log(): t.StepRecord[];
  step(report: Report, cancel: Cancel): Promise<t.StepResult>;
  /** The mean loss of the validation lines, or of these lines. */
  evaluate(data: Uint8Array | undefined, report: Report, cancel: Cancel): Promise<t.Evaluation>;
  savePeft(): Promise<t.NamedBytes[]>;
  saveGguf(): Promise<Uint8Array>;
  checkpoint(): Promise<Uint8Array>;
  restore(bytes: Uint8Array): void;
}

/** The module itself, after it was initialised. */
export interface Engine {
  devices(): Promise<t.DeviceInfo[]>;
  memoryUse(): t.MemoryUse;
  /** Opens the file that these parts make, for a device. */
  open(parts: Reader[], device: t.DeviceChoice, limits: t.Limits, cancel: Cancel): Promise<Opened>;
  Adapters: new () => Adapters;
  Cancel: new () => Cancel;
  Hasher: new (state?: Uint8Array) => Hasher;
}
