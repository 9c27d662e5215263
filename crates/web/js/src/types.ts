/** The public types of the package: what a page gives and gets. */

/** Where the bytes of a model come from. Several URLs or files are the parts of one split model. */
export type Source =
  | string
  | URL
  | File
  | Blob
  | FileSystemFileHandle
  | ArrayBuffer
  | Uint8Array
  | readonly (string | URL)[]
  | readonly (File | Blob | FileSystemFileHandle)[];

/**
 * The executor: a GPU through WebGPU, or the CPU. `auto` takes a GPU that is not emulated, else the
 * CPU.
 */
export type DeviceChoice = 'auto' | 'gpu' | 'cpu';

/** How far some work is. `total` is 0 while it is not known. */
export interface Progress {
  /**
   * `engine`, `wait`, `download`, `verify`, `load`, `data` and `digest` count bytes, `compile` counts
   * kernels, `prompt` tokens, `step` layers. `engine`: the package itself comes. `wait`: another tab downloads the file, and this one waits for
   * it. `data`: examples are checked. `digest`: the model is read, so that a checkpoint knows it.
   */
  readonly phase: 'engine' | 'wait' | 'download' | 'verify' | 'load' | 'compile' | 'prompt' | 'data' | 'digest' | 'step';
  readonly done: number;
  readonly total: number;
}

/** What every longer call takes. */
export interface Work {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

export interface LoadOptions extends Work {
  /** Default `auto`. */
  readonly device?: DeviceChoice;
  /**
   * `opfs` keeps a downloaded file in the browser's private file system. Default: `opfs` for URLs.
   */
  readonly cache?: 'opfs' | 'none';
  /**
   * SHA-256 of the file, 64 hexadecimal digits; a list for a split model. A file with another
   * digest is refused and not kept.
   */
  readonly sha256?: string | readonly string[];
  readonly limits?: Limits;
}

export interface Limits {
  /** Largest number of bytes of the file. */
  readonly fileBytes?: number;
  /** Bytes that weights, cache and intermediates may take together. */
  readonly memoryBytes?: number;
}

export interface ModelInfo {
  /** The name in the file (`general.name`), or the name of the source. */
  readonly name: string;
  readonly architecture: string;
  readonly executor: 'gpu' | 'cpu';
  /** The name of the adapter of the GPU; the processor's architecture on the CPU. */
  readonly adapter: string;
  /** Whether the GPU is emulated on the CPU. */
  readonly fallback: boolean;
  /**
   * SHA-256 over what the model computes with, hexadecimal. Snapshots and checkpoints compare it.
   */
  readonly digest: string;
  readonly contextLength: number;
  readonly layers: number;
  readonly vocabulary: number;
  readonly parameters: number;
  /** The type that most of the weights have, for example `Q8_0`. */
  readonly type: string;
  readonly fileBytes: number;
  readonly template: { readonly present: boolean; readonly tools: boolean; readonly thinking: boolean };
  /** Assumptions that were made to load the file, each a sentence. */
  readonly notes: readonly string[];
}

export type KvType = 'f16' | 'f32' | 'q8_0';

export interface SessionOptions {
  /** Tokens of the context. Default 8192, or the model's own length if that is less. */
  readonly context?: number;
  /** Type of the KV cache. Default `f16`. */
  readonly kv?: KvType;
  readonly adapters?: readonly AppliedAdapter[];
  /**
   * Whether a GPU rounds activations where that is faster (`fast`), or computes in `f32`. The CPU
   * never rounds.
   */
  readonly precision?: 'fast' | 'f32';
  /** Largest number of tokens of a step of the prompt. 0 leaves it to the executor. */
  readonly chunk?: number;
  /**
   * Tokens at the start that stay when a full context is shifted. Without it a full context ends
   * the answer.
   */
  readonly shift?: number;
  /**
   * Names of inner values that `logits` gives, too (`model.taps()`). On a GPU they cost some speed.
   */
  readonly taps?: readonly string[];
}

/** A batch never shifts: a full sequence draws nothing more. */
export interface BatchOptions extends Omit<SessionOptions, 'shift' | 'taps'> {
  /** Number of sequences, from 1 to 256. */
  readonly sequences: number;
}

export interface BatchFacts {
  /** Tokens of the context of each sequence. */
  readonly context: number;
  readonly sequences: number;
}

/** A token that a step of a batch drew. */
export interface Drawn {
  readonly sequence: number;
  readonly id: number;
  /** Natural logarithm of the token's probability. */
  readonly logProb: number;
}

/** Bytes of memory. */
export interface Needs {
  readonly weights: number;
  readonly kv: number;
  readonly intermediates: number;
  readonly total: number;
  /** What is free, if the browser tells. */
  readonly available?: number;
}

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly unknown[];
  readonly [key: string]: unknown;
}

export interface Sampling {
  /** 0 is greedy. Default 0.7. */
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly lastN?: number;
  readonly seed?: number;
}

/** Options of a text that goes on without a chat template. */
export interface CompleteOptions extends Work {
  readonly sampling?: Sampling;
  /** Texts that end the answer and are not shown. */
  readonly stops?: readonly string[];
  readonly maxTokens?: number;
}

/** How a conversation becomes a prompt. */
export interface RenderOptions {
  /**
   * Tools as OpenAI's interface has them: `{ type: 'function', function: { name, description,
   * parameters } }`.
   */
  readonly tools?: readonly unknown[];
  readonly thinking?: boolean;
}

export interface AnswerOptions extends CompleteOptions, RenderOptions {}

export interface TokenizeOptions {
  /** Whether names of control tokens are tokens. Default false. */
  readonly special?: boolean;
  /** Whether the token that begins a text comes first, where the model has one. Default false. */
  readonly start?: boolean;
}

/** One token of an answer. */
export interface Token {
  readonly id: number;
  /** Text of the answer to show now; empty while a character or a possible stop is incomplete. */
  readonly text: string;
  /** Text of the thinking to show now. */
  readonly thinking: string;
  /** Natural logarithm of the token's probability. */
  readonly logProb: number;
}

export interface ToolCall {
  readonly name: string;
  readonly arguments: unknown;
}

/** The end of an answer. */
export interface Finish {
  readonly reason: 'end' | 'stop' | 'length' | 'context' | 'cancelled';
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: readonly ToolCall[];
  /** The message to append to the conversation. */
  readonly message: Message;
  readonly promptTokens: number;
  /** Tokens of the prompt that were evaluated now; the rest was in the cache. */
  readonly evaluatedTokens: number;
  readonly tokens: number;
  readonly promptSeconds: number;
  readonly seconds: number;
}

/** An inner value of the model. */
export interface Tap {
  readonly name: string;
  /** The layer, from 0; 0 where the value is of no layer. */
  readonly layer: number;
  /** [ids, width] */
  readonly values: Float32Array;
}

/** Raw values of the model. */
export interface Logits {
  /** [ids, vocabulary] */
  readonly logits: Float32Array;
  /** The values that the session taps, layer by layer. */
  readonly taps: readonly Tap[];
}

export interface AdapterInfo {
  /** Number of matrices that the adapter changes. */
  readonly matrices: number;
  /** Bytes beside the weights. */
  readonly bytes: number;
  readonly notes: readonly string[];
}

/** A text, or its bytes in UTF-8. */
export type Text = string | Uint8Array | Blob;

export interface TrainOptions {
  /**
   * JSON Lines with the keys of `weft train` (`prompt`/`completion`, `messages`, `text`, `ids`,
   * ..).
   */
  readonly data: Text;
  /** Lines whose loss is measured and not learnt. Default: a share of 100 and more examples. */
  readonly validation?: Text;
  readonly method?: {
    /** Default 16. */
    readonly rank?: number;
    /** Default 32. */
    readonly alpha?: number;
    /** `all`, `attn`, `mlp`, names such as `q`, or patterns such as `blk.3.*`. Default `all`. */
    readonly targets?: string | readonly string[];
    readonly dropout?: number;
    readonly rslora?: boolean;
    /** An adapter to go on from, in place of new factors: PEFT's two files, or a GGUF file. */
    readonly init?: readonly (NamedBytes | File)[];
  };
  /** Examples of a step. Default 8. */
  readonly batch?: number;
  /** Rows (tokens) that are computed at once. */
  readonly rows?: number;
  /** Longest example in tokens. */
  readonly length?: number;
  readonly rate?: number;
  readonly schedule?: 'constant' | 'linear' | 'cosine';
  readonly warmup?: number;
  /** How often all examples are learnt. Default 3, and more for few examples. */
  readonly epochs?: number;
  /** Steps of the whole run, which the schedule ends at, in place of `epochs`. */
  readonly steps?: number;
  /** Evaluations without a better loss after which the run ends; 0 for none. */
  readonly patience?: number;
  readonly decay?: number;
  /** Of AdamW. Default 0.9 and 0.999. */
  readonly betas?: readonly [number, number];
  /** Of AdamW, outside the root. Default 1e-8. */
  readonly eps?: number;
  /** Largest norm of all gradients together; 0 for no limit. Default 1. */
  readonly clip?: number;
  /** Mean of the loss: over all tokens of a batch, or over the means of its examples. Default `tokens`. */
  readonly mean?: 'tokens' | 'examples';
  /** What becomes of examples above `length`. Default `cut`. */
  readonly longer?: 'cut' | 'drop';
  /** Default true. */
  readonly shuffle?: boolean;
  /** Whether a share of 100 and more examples is held out where `validation` is not given. Default true. */
  readonly holdOut?: boolean;
  readonly seed?: number;
  /** Which tokens are learnt: completions and turns of the assistant, or all. Default `completions`. */
  readonly learn?: 'completions' | 'all';
}

export interface TrainFacts {
  /** Examples that are learnt. */
  readonly examples: number;
  /** Examples that are held out. */
  readonly validation: number;
  readonly documents: number;
  readonly tokens: number;
  readonly learntTokens: number;
  readonly stepsPerEpoch: number;
  /** Steps of the whole run. */
  readonly steps: number;
  /** Number of trained elements. */
  readonly parameters: number;
  /** Names of columns and keys that have no effect. */
  readonly unused: readonly string[];
  /** The options in force, with every default. */
  readonly options: Readonly<Record<string, unknown>>;
  /** What the run does not take of the adapter that it goes on from, each a sentence. */
  readonly notes: readonly string[];
}

export interface TrainMemory {
  readonly weights: number;
  readonly parameters: number;
  readonly optimizer: number;
  readonly intermediates: number;
  readonly total: number;
}

/**
 * Why a run has ended, by the rules of `weft train`: all steps are done, nothing gets better, or the
 * losses of ten steps are far above the first one (`risen`), which asks for a smaller rate.
 */
export type Ended = 'steps' | 'flat' | 'patience' | 'risen';

/** A step in the log of a run. */
export interface StepRecord {
  readonly number: number;
  readonly loss: number;
  readonly norm: number;
  readonly rate: number;
  /** Tokens of the batch. */
  readonly tokens: number;
  /** The loss of the held-out examples after the step, if it was measured. */
  readonly validation: number | null;
  /** True if the loss or the norm was not finite: the weights stay as they were. */
  readonly skipped: boolean;
}

export interface StepResult extends StepRecord {
  /** Number of tokens that were learnt. */
  readonly targets: number;
  readonly seconds: number;
  /** Whether the run evaluates the held-out examples now, as `weft train` does. */
  readonly validates: boolean;
  readonly ended: Ended | null;
}

/** The mean loss of some lines. */
export interface Evaluation {
  readonly loss: number;
  /** Number of tokens whose loss was measured. */
  readonly targets: number;
  /** Whether the run has ended now. */
  readonly ended: Ended | null;
}

/** One part of an example as the model reads it. */
export interface Piece {
  readonly text: string;
  readonly learnt: boolean;
}

/** A file in memory. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface MemoryUse {
  /** Bytes of WebAssembly memory, which never shrinks. */
  readonly wasm: number;
  /** Bytes of live buffers on the GPU. */
  readonly gpu: number;
  readonly buffers: number;
}

export interface DeviceInfo {
  readonly name: string;
  readonly kind: 'gpu' | 'cpu';
  readonly fallback: boolean;
  readonly maxBufferBytes: number;
}

/** A file of the cache. */
export interface CachedFile {
  /** The identity of the file: its URL. */
  readonly url: string;
  readonly bytes: number;
  /** Bytes that are there; less than `bytes` for a download that was interrupted. */
  readonly present: number;
  readonly whole: boolean;
  readonly sha256?: string;
  /** Milliseconds since 1970. */
  readonly used: number;
}

/** What a check of a cached file found. */
export interface Verified {
  readonly url: string;
  /** Whether the bytes have the digest that they had when they came. */
  readonly whole: boolean;
  /** SHA-256 of the bytes that are there. */
  readonly found: string;
  readonly expected: string;
}

/** The space that the browser gives this page, in bytes. */
export interface Storage {
  readonly used: number;
  /** 0 where the browser does not tell. */
  readonly quota: number;
  /** Whether the browser never deletes the files by itself. */
  readonly persistent: boolean;
}

/** An adapter with its scale; the handle comes from `Model.adapter`. */
export interface AppliedAdapter {
  readonly adapter: { readonly info: AdapterInfo };
  readonly scale?: number;
}
