/**
 * Stands in for the WebAssembly module: reads files as the engine does, and answers in words of
 * the question. The last question steers it: see `Session.send`.
 */
import type * as e from '../js/dist/engine.js';
import type * as t from '../js/dist/index.js';
import { Sha256 } from './sha256.js';

/** A file begins with GGUF and its length, and then has anything. */
const HEADER_BYTES = 64 * 1024;
const CHUNK_BYTES = 256 * 1024;

let live = 0;
/** Raised when a device is lost: models of earlier numbers are on a lost device. */
let device = 0;

class Counted {
  #isFree = false;
  constructor() {
    live += 1;
  }
  free(): void {
    if (this.#isFree) throw new Error('freed twice');
    this.#isFree = true;
    live -= 1;
  }
}

export class Cancel extends Counted implements e.Cancel {
  raised = false;
  cancel(): void {
    this.raised = true;
  }
}

export class Hasher extends Counted implements e.Hasher {
  readonly #sha: Sha256;
  constructor(state?: Uint8Array) {
    super();
    this.#sha = new Sha256(state);
  }
  update(bytes: Uint8Array): void {
    this.#sha.update(bytes);
  }
  state(): Uint8Array {
    return this.#sha.state();
  }
  digest(): string {
    return this.#sha.digest();
  }
}

export class Adapters extends Counted implements e.Adapters {
  readonly list: string[] = [];
  add(adapter: e.Adapter, scale: number): void {
    const { name, on } = adapter as Adapter;
    if (on !== device) throw fail('device-lost', 'the adapter is on a lost device');
    this.list.push(`${name}*${scale}`);
  }
}

class Adapter extends Counted implements e.Adapter {
  readonly name: string;
  readonly on = device;
  constructor(files: t.NamedBytes[]) {
    super();
    this.name = files.map(({ name, bytes }) => `${name}:${bytes.length}`).join('+');
  }
  info(): t.AdapterInfo {
    return { matrices: 1, bytes: 4, notes: [] };
  }
}

function fail(code: string, message: string): e.EngineError {
  return { code, message };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const never = () => new Promise<never>(() => {});

class Opened extends Counted implements e.Opened {
  readonly #parts: e.Reader[];
  readonly #device: t.DeviceChoice;
  #digest = '';

  constructor(parts: e.Reader[], choice: t.DeviceChoice) {
    super();
    this.#parts = parts;
    this.#device = choice;
  }

  info(): t.ModelInfo {
    const fileBytes = this.#parts.reduce((sum, { length }) => sum + length, 0);
    return {
      name: this.#parts[0]!.name, architecture: 'fake', executor: this.#device === 'gpu' ? 'gpu' : 'cpu', adapter: 'fake',
      fallback: false, digest: this.#digest, contextLength: 128, layers: 1, vocabulary: 8, parameters: 2, type: 'F32', fileBytes,
      template: { present: true, tools: false, thinking: false }, notes: [],
    };
  }

  needs({ context = 128 }: t.SessionOptions): t.Needs {
    return { weights: 100, kv: context, intermediates: 1, total: 101 + context };
  }

  async load(report: e.Report, cancel: e.Cancel): Promise<Model> {
    this.free();
    const sha = new Sha256();
    const total = this.info().fileBytes;
    let done = 0;
    for (const part of this.#parts) {
      for (let at = 0; at < part.length; at += CHUNK_BYTES) {
        if ((cancel as Cancel).raised) throw fail('aborted', 'the call was cancelled');
        const bytes = await part.read(at, Math.min(CHUNK_BYTES, part.length - at));
        sha.update(bytes);
        done += bytes.length;
        report({ phase: 'load', done, total });
      }
    }
    this.#digest = sha.digest();
    return new Model(this.info());
  }
}

class Model extends Counted implements e.Model {
  readonly #info: t.ModelInfo;
  readonly on = device;

  constructor(info: t.ModelInfo) {
    super();
    this.#info = info;
  }
  info(): t.ModelInfo {
    return this.#info;
  }
  needs({ context = 128 }: t.SessionOptions): t.Needs {
    return { weights: 100, kv: context, intermediates: 1, total: 101 + context };
  }
  async session({ context = 128 }: t.SessionOptions): Promise<Session> {
    return new Session(context);
  }
  async adapter(files: t.NamedBytes[]): Promise<Adapter> {
    return new Adapter(files);
  }
  async trainer({ data }: e.EngineTrainOptions): Promise<Trainer> {
    return new Trainer(new TextDecoder().decode(data).trim().split('\n'));
  }
  tokenize(text: string): Uint32Array {
    return Uint32Array.from(text, (char) => char.charCodeAt(0));
  }
  detokenize(ids: Uint32Array): string {
    return String.fromCharCode(...ids);
  }
  render(messages: readonly t.Message[]): string {
    return messages.map(({ role, content }) => `<${role}>${content}`).join('');
  }
  taps(): string[] {
    return ['embed'];
  }
  async batch({ context = 8, sequences }: t.BatchOptions): Promise<Batch> {
    return new Batch(context, sequences);
  }
  compiled(): { done: number; total: number } {
    return { done: 0, total: 0 };
  }
  lost(): boolean {
    return this.on !== device;
  }
}

class Session extends Counted implements e.Session {
  readonly context: number;
  #tokens: number[] = [];
  #adapters = '';
  #on = device;

  constructor(context: number) {
    super();
    this.context = context;
  }

  tokens(): Uint32Array {
    return Uint32Array.from(this.#tokens);
  }

  send(messages: readonly t.Message[], _options: object, onToken: (token: t.Token) => void, report: e.Report, cancel: e.Cancel): Promise<t.Finish> {
    return this.complete(String(messages.at(-1)?.content), {}, onToken, report, cancel);
  }

  /**
   * `slow`: 500 tokens. `lose`, `trap`, `trap later`, `die`: what they say. Else the words, back.
   */
  async complete(text: string, _options: object, onToken: (token: t.Token) => void, report: e.Report, cancel: e.Cancel): Promise<t.Finish> {
    if (this.#on !== device) throw fail('device-lost', 'the session is on a lost device');
    report({ phase: 'prompt', done: 1, total: 1 });
    if (text === 'lose') {
      device += 1;
      throw fail('device-lost', 'lost on purpose');
    }
    if (text === 'trap') throw new WebAssembly.RuntimeError('unreachable');
    if (text === 'trap later') setTimeout(() => { throw new WebAssembly.RuntimeError('unreachable'); });
    if (text === 'die') self.close();
    if (text === 'die' || text === 'trap later') return never();
    const words = text === 'slow' ? Array.from({ length: 500 }, (_, n) => `${n} `) : `${text} ${this.#adapters}`.trim().split(/(?<= )/);
    let [content, tokens] = ['', 0];
    for (const word of words) {
      await pause(text === 'slow' ? 10 : 0);
      if ((cancel as Cancel).raised) break;
      this.#tokens.push(tokens);
      content += word;
      tokens += 1;
      onToken({ id: tokens, text: word, thinking: '', logProb: -1 });
    }
    return {
      reason: tokens < words.length ? 'cancelled' : 'end', content, thinking: '', toolCalls: [], message: { role: 'assistant', content },
      promptTokens: 1, evaluatedTokens: 1, tokens, promptSeconds: 0, seconds: 0,
    };
  }

  async logits(ids: Uint32Array): Promise<t.Logits> {
    return { logits: Float32Array.from(ids), taps: [] };
  }
  setAdapters(adapters: e.Adapters): void {
    this.#adapters = (adapters as Adapters).list.join(' ');
  }
  rollback(tokens: number): void {
    this.#tokens.length = tokens;
  }
  async save(): Promise<Uint8Array> {
    return Uint8Array.from(this.#tokens);
  }
  async load(bytes: Uint8Array): Promise<void> {
    this.#tokens = [...bytes];
  }
  async moveTo(model: e.Model, adapters: e.Adapters): Promise<void> {
    this.#on = (model as Model).on;
    this.setAdapters(adapters);
  }
}

/** Draws the number of tokens of each sequence. */
class Batch extends Counted implements e.Batch {
  readonly #tokens: number[][];

  constructor(readonly context: number, readonly sequences: number) {
    super();
    this.#tokens = Array.from({ length: sequences }, () => []);
  }
  tokens(sequence: number): Uint32Array {
    return Uint32Array.from(this.#tokens[sequence] ?? []);
  }
  feed(sequence: number, ids: Uint32Array): void {
    this.#tokens[sequence]?.push(...ids);
  }
  rollback(sequence: number, tokens: number): void {
    this.#tokens[sequence]?.splice(tokens);
  }
  async step(): Promise<t.Drawn[]> {
    const fed = this.#tokens.map((tokens, sequence) => ({ tokens, sequence })).filter(({ tokens }) => tokens.length > 0);
    return fed.map(({ tokens, sequence }) => ({ sequence, id: tokens.push(tokens.length) - 1, logProb: 0 }));
  }
  setAdapters(): void {}
  async moveTo(): Promise<void> {}
}

class Trainer extends Counted implements e.Trainer {
  readonly #lines: string[];
  #number = 0;

  constructor(lines: string[]) {
    super();
    const bad = lines.findIndex((line) => !line.startsWith('{'));
    if (bad >= 0) throw { ...fail('train', `line ${bad + 1} is no JSON object`), line: bad + 1 };
    this.#lines = lines;
  }
  facts(): t.TrainFacts {
    const examples = this.#lines.length;
    return { examples, validation: 0, documents: examples, tokens: 1, learntTokens: 1, stepsPerEpoch: 1, steps: 3, parameters: 1, unused: [], options: {}, notes: [] };
  }
  memory(): t.TrainMemory {
    return { weights: 1, parameters: 1, optimizer: 1, intermediates: 1, total: 4 };
  }
  examples(count: number): t.Piece[][] {
    return this.#lines.slice(0, count).map((text) => [{ text, learnt: true }]);
  }
  log(): t.StepRecord[] {
    return [];
  }
  async step(report: e.Report, cancel: e.Cancel): Promise<t.StepResult> {
    for (let done = 1; done <= 20; done += 1) {
      await pause(5);
      if ((cancel as Cancel).raised) throw fail('aborted', 'the call was cancelled');
      report({ phase: 'step', done, total: 20 });
    }
    this.#number += 1;
    const record = { number: this.#number, loss: 1 / this.#number, norm: 1, rate: 1, tokens: 1, validation: null, skipped: false };
    return { ...record, targets: 1, seconds: 0, validates: false, ended: null };
  }
  async evaluate(data: Uint8Array | undefined): Promise<t.Evaluation> {
    return { loss: 1, targets: data?.length ?? 0, ended: null };
  }
  async savePeft(): Promise<t.NamedBytes[]> {
    return [{ name: 'adapter_config.json', bytes: new Uint8Array([123, 125]) }, { name: 'adapter_model.safetensors', bytes: new Uint8Array(8) }];
  }
  async saveGguf(): Promise<Uint8Array> {
    return new Uint8Array([71, 71, 85, 70]);
  }
  async checkpoint(): Promise<Uint8Array> {
    return Uint8Array.of(this.#number);
  }
  restore(bytes: Uint8Array): void {
    this.#number = bytes[0] ?? 0;
  }
}

export async function devices(): Promise<t.DeviceInfo[]> {
  return [{ name: 'fake', kind: 'cpu', fallback: false, maxBufferBytes: 1 }];
}

/** `buffers` is the number of live objects. */
export function memoryUse(): t.MemoryUse {
  return { wasm: 0, gpu: 0, buffers: live };
}

/** Reads headers, and a small tensor at the end of each file. */
export async function open(parts: e.Reader[], choice: t.DeviceChoice, limits: t.Limits, cancel: e.Cancel): Promise<Opened> {
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  if (bytes > (limits.fileBytes ?? Infinity)) throw fail('too-large', `the file has ${bytes} bytes, and the limit is ${limits.fileBytes}; raise limits.fileBytes`);
  for (const part of parts) {
    const header = await part.read(0, Math.min(HEADER_BYTES, part.length));
    const length = Number(new DataView(header.buffer, header.byteOffset).getBigUint64(8, true));
    if (length > part.length) throw fail('truncated', `${part.name} has ${part.length} bytes and ends too early; load the whole file`);
    await part.read(part.length - 16, 16);
  }
  if ((cancel as Cancel).raised) throw fail('aborted', 'the call was cancelled');
  return new Opened(parts, choice);
}

export default async function init(_options: { module_or_path: URL }): Promise<void> {}
