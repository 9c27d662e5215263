/** What the pages use of the package `@weft-llm/web`. The types of data are the package's own. */
import type {
  AdapterInfo,
  AnswerOptions,
  AppliedAdapter,
  CachedFile,
  DeviceInfo,
  Evaluation,
  Finish,
  LoadOptions,
  MemoryUse,
  Message,
  ModelInfo,
  NamedBytes,
  Needs,
  Piece,
  Progress,
  SessionOptions,
  Source,
  StepRecord,
  StepResult,
  Storage,
  Token,
  TrainFacts,
  TrainMemory,
  TrainOptions,
} from '@weft-llm/web';

export interface Work {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

export interface Adapter {
  readonly info: AdapterInfo;
  close(): Promise<void>;
}

export interface Session {
  readonly context: number;
  readonly finish: Finish | undefined;
  send(messages: readonly Message[], options?: AnswerOptions): AsyncIterable<Token>;
  setAdapters(adapters: readonly AppliedAdapter[]): Promise<void>;
  tokens(): Promise<Uint32Array>;
  save(): Promise<Uint8Array>;
  load(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface Trainer {
  readonly facts: TrainFacts;
  readonly memory: TrainMemory;
  examples(count: number): Promise<Piece[][]>;
  log(): Promise<StepRecord[]>;
  step(work?: Work): Promise<StepResult>;
  evaluate(data?: string | Uint8Array | Blob, work?: Work): Promise<Evaluation>;
  savePeft(): Promise<NamedBytes[]>;
  saveGguf(): Promise<Uint8Array>;
  checkpoint(): Promise<Uint8Array>;
  restore(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface Model {
  readonly info: ModelInfo;
  needs(options?: SessionOptions): Promise<Needs>;
  session(options?: SessionOptions): Promise<Session>;
  adapter(files: readonly NamedBytes[]): Promise<Adapter>;
  trainer(options: TrainOptions, work?: Work): Promise<Trainer>;
  memory(): Promise<MemoryUse>;
  close(): Promise<void>;
}

export interface Cache {
  list(): Promise<readonly CachedFile[]>;
  delete(url: string): Promise<void>;
  storage(): Promise<Storage>;
  persist(): Promise<boolean>;
}

export interface Engine {
  readonly Model: { load(source: Source, options?: LoadOptions): Promise<Model> };
  readonly cache: Cache;
  devices(): Promise<readonly DeviceInfo[]>;
}
