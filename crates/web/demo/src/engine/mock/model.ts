/** The mock's model: loads anything whose name does not ask for an error. */
import type {
  AdapterInfo,
  LoadOptions,
  MemoryUse,
  ModelInfo,
  NamedBytes,
  Needs,
  SessionOptions,
  Source,
  TrainOptions,
} from '../../../../js/src/types.js';
import { has, progress, WeftError } from './behaviour.js';
import { remember } from './host.js';
import { Session } from './session.js';
import { Trainer } from './trainer.js';

export class Adapter {
  readonly info: AdapterInfo;

  constructor(files: readonly NamedBytes[]) {
    if (!files.some(({ name }) => /\.(safetensors|gguf)$/.test(name))) {
      throw new WeftError(
        'adapter',
        'an adapter is adapter_model.safetensors beside adapter_config.json, or a GGUF file',
      );
    }
    this.info = { notes: [] as readonly string[] } as AdapterInfo;
  }

  async close(): Promise<void> {}
}

function nameOf(source: Source): string {
  const first = Array.isArray(source) ? (source as readonly unknown[])[0] : source;
  if (first === 'default') return 'default';
  if (typeof first === 'string' || first instanceof URL) return String(first);
  return first instanceof File || first instanceof FileSystemFileHandle ? first.name : 'bytes';
}

/** Errors by what the name of the source contains. */
const REFUSED: readonly [string, string, string][] = [
  ['404', 'http', 'the server has no file at this address (404); check the address'],
  ['html', 'not-gguf', 'the file is a web page instead of a GGUF file; use the address of the file itself'],
  ['cors', 'cors', 'the server does not let pages of other hosts read the file; download it and drop it here'],
];

export class Model {
  readonly info: ModelInfo;
  #open = true;

  private constructor(name: string) {
    this.info = {
      name: name === 'default' ? 'Bobbin of the Thimble Isles' : (name.split('/').pop() ?? name),
      architecture: 'qwen3',
      executor: has('gpu') ? 'gpu' : 'cpu',
      adapter: has('gpu') ? 'mock gpu' : 'wasm32',
      fallback: false,
      digest: `digest of ${name}`,
      contextLength: 1024,
      layers: 6,
      vocabulary: 2048,
      parameters: 6_033_408,
      type: 'Q4_K',
      fileBytes: 4_086_144,
      template: { present: true, tools: true, thinking: true },
      notes: [],
    };
  }

  static async load(source: Source, options: LoadOptions = {}): Promise<Model> {
    const name = nameOf(source);
    for (const [part, code, message] of REFUSED) {
      if (name.includes(part)) throw new WeftError(code, message);
    }
    const model = new Model(name);
    const ms = has('slow-load') ? 400 : 5;
    if (name !== 'default') await progress('download', 640_000_000, 8, ms, options);
    await progress('load', 4_086_144, 3, ms, options);
    if (has('gpu')) await progress('compile', 30, 5, ms, options);
    if (/^https?:/.test(name)) {
      remember({ url: name, bytes: 640_000_000, present: 640_000_000, whole: true, used: Date.now() });
    }
    return model;
  }

  async needs(options: SessionOptions = {}): Promise<Needs> {
    const kv = (options.context ?? 1024) * 3072 * (has('large-snapshot') ? 1e5 : 1);
    return { weights: 4_086_144, kv, intermediates: 2_000_000, total: 6_086_144 + kv };
  }

  async session(options: SessionOptions = {}): Promise<Session> {
    const session = new Session(options.context ?? 1024, () => this.#open);
    await session.setAdapters(options.adapters ?? []);
    return session;
  }

  async adapter(files: readonly NamedBytes[]): Promise<Adapter> {
    return new Adapter(files);
  }

  async trainer(options: TrainOptions): Promise<Trainer> {
    return Trainer.of(options);
  }

  async memory(): Promise<MemoryUse> {
    return { wasm: 12_500_000, gpu: has('gpu') ? 13_700_000 : 0, buffers: has('gpu') ? 141 : 0 };
  }

  async close(): Promise<void> {
    this.#open = false;
  }
}
