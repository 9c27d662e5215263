/**
 * The messages between page and worker. The page calls methods of objects in the worker by their
 * handles; `Methods` is the whole list. Progress and tokens come while a call runs.
 */
import type { EngineTrainOptions, Plain } from './engine.js';
import type { PlainError } from './error.js';
import type * as t from './types.js';

/** The number of an object in the worker. */
export type Handle = number;

/** The object that is always there: the worker itself. */
export const HOST: Handle = 0;

/** Where the bytes of a model come from, in the form that is sent. */
export type SentSource =
  | { readonly kind: 'urls'; readonly urls: readonly string[] }
  | { readonly kind: 'files'; readonly files: readonly (Blob | FileSystemFileHandle)[] };

export interface OpenRequest {
  readonly source: SentSource;
  readonly device: t.DeviceChoice;
  readonly cache: 'opfs' | 'none';
  readonly sha256: readonly string[];
  readonly limits: t.Limits;
}

/** An object that was made, with what is known of it. */
export interface Made<Facts> {
  readonly handle: Handle;
  readonly facts: Facts;
}

/** What the worker still holds after an object was closed. */
export interface Closed {
  /** Bytes of WebAssembly memory, which never shrinks. */
  readonly wasm: number;
}

export interface SentAdapter {
  readonly handle: Handle;
  readonly scale: number;
}

interface Closes {
  close(): Closed;
}

export interface HostMethods {
  inspect(request: OpenRequest): Made<t.ModelInfo>;
  load(request: OpenRequest): Made<t.ModelInfo>;
  devices(): t.DeviceInfo[];
  memory(): t.MemoryUse;
  cachedFiles(): t.CachedFile[];
  verifyCached(url: string): t.Verified;
  deleteCached(url: string): void;
  storage(): Omit<t.Storage, 'persistent'>;
}

export interface InspectionMethods extends Closes {
  needs(options: t.SessionOptions): t.Needs;
  load(): Made<t.ModelInfo>;
}

export interface ModelMethods extends Closes {
  needs(options: Omit<t.SessionOptions, 'adapters'>): t.Needs;
  session(options: Omit<t.SessionOptions, 'adapters'>, adapters: readonly SentAdapter[]): Made<{ context: number }>;
  batch(options: Omit<t.BatchOptions, 'adapters'>, adapters: readonly SentAdapter[]): Made<t.BatchFacts>;
  adapter(files: readonly t.NamedBytes[]): Made<t.AdapterInfo>;
  trainer(options: EngineTrainOptions): Made<{ facts: t.TrainFacts; memory: t.TrainMemory }>;
  tokenize(text: string, options: t.TokenizeOptions): Uint32Array;
  detokenize(ids: Uint32Array): string;
  render(messages: readonly t.Message[], options: t.RenderOptions): string;
  taps(): string[];
}

export interface SessionMethods extends Closes {
  send(messages: readonly t.Message[], options: Plain<t.AnswerOptions>): t.Finish;
  complete(text: string, options: Plain<t.CompleteOptions>): t.Finish;
  logits(ids: Uint32Array): t.Logits;
  tokens(): Uint32Array;
  setAdapters(adapters: readonly SentAdapter[]): void;
  rollback(tokens: number): void;
  save(): Uint8Array;
  load(bytes: Uint8Array): void;
}

export interface BatchMethods extends Closes {
  tokens(sequence: number): Uint32Array;
  feed(sequence: number, ids: Uint32Array): void;
  rollback(sequence: number, tokens: number): void;
  step(sampling: t.Sampling | readonly t.Sampling[]): t.Drawn[];
  setAdapters(adapters: readonly SentAdapter[]): void;
}

export interface AdapterMethods extends Closes {}

export interface TrainerMethods extends Closes {
  examples(count: number): t.Piece[][];
  log(): t.StepRecord[];
  step(): t.StepResult;
  evaluate(data: Uint8Array | undefined): t.Evaluation;
  savePeft(): t.NamedBytes[];
  saveGguf(): Uint8Array;
  checkpoint(): Uint8Array;
  restore(bytes: Uint8Array): void;
}

/** Any interface of this list. */
export type Methods<M> = { [K in keyof M]: (...args: never[]) => unknown };
export type Args<M extends Methods<M>, K extends keyof M> = Parameters<M[K]>;
export type Result<M extends Methods<M>, K extends keyof M> = Awaited<ReturnType<M[K]>>;

/** Events of a model. */
export type EventName = 'devicelost' | 'devicerestored';

export type ToWorker =
  | { readonly type: 'call'; readonly id: number; readonly target: Handle; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: 'cancel'; readonly id: number }
  /** The page has no reference to the object any more. */
  | { readonly type: 'free'; readonly target: Handle };

export type FromWorker =
  /**
   * The worker runs. It holds the Web Lock of this name until it ends, if the browser has locks.
   */
  | { readonly type: 'ready'; readonly lock: string | undefined }
  | { readonly type: 'result'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: PlainError }
  | { readonly type: 'progress'; readonly id: number; readonly progress: t.Progress }
  | { readonly type: 'token'; readonly id: number; readonly token: t.Token }
  | { readonly type: 'event'; readonly target: Handle; readonly name: EventName; readonly error?: PlainError }
  /** The worker cannot go on, and ends. */
  | { readonly type: 'fatal'; readonly reason: string };

/** The buffers in a result, which are moved instead of copied. */
export function buffersOf(value: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  if (Array.isArray(value)) return value.flatMap(buffersOf);
  const isRecord = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isRecord ? Object.values(value).flatMap(buffersOf) : [];
}
