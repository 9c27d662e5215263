/** The mock's trainer: a loss that falls, and examples cut at the completion. */
import type {
  Evaluation,
  NamedBytes,
  Piece,
  StepRecord,
  StepResult,
  TrainFacts,
  TrainMemory,
  TrainOptions,
} from '../../../../js/src/types.js';
import { has, once, pause, progress, WeftError } from './behaviour.js';

interface Work {
  readonly onProgress?: (progress: { phase: 'step'; done: number; total: number }) => void;
  readonly signal?: AbortSignal;
}
interface Line {
  readonly prompt?: string;
  readonly completion?: string;
  readonly text?: string;
  readonly messages?: readonly { role: string; content: string }[];
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

async function textOf(data: string | Uint8Array | Blob): Promise<string> {
  if (typeof data === 'string') return data;
  return data instanceof Blob ? data.text() : decoder.decode(data);
}

function pieces(line: Line): Piece[] {
  if (line.text !== undefined) return [{ text: line.text, learnt: true }];
  if (line.messages !== undefined) {
    return line.messages.map(({ role, content }) => ({ text: `<${role}>${content}\n`, learnt: role === 'assistant' }));
  }
  return [
    { text: `<|im_start|>user\n${line.prompt}<|im_end|>\n<|im_start|>assistant\n`, learnt: false },
    { text: `${line.completion}<|im_end|>`, learnt: true },
  ];
}

async function read(name: string, data: string | Uint8Array | Blob): Promise<Line[]> {
  const lines: Line[] = [];
  for (const [at, line] of (await textOf(data)).split('\n').entries()) {
    if (line.trim() === '') continue;
    const parsed = JSON.parse(line) as Line;
    if (parsed.completion === '') {
      throw new WeftError('train', `${name}, line ${at + 1}: nothing to learn: the completion is empty`, at + 1);
    }
    lines.push(parsed);
  }
  return lines;
}

export class Trainer {
  readonly facts: TrainFacts;
  readonly memory: TrainMemory = {
    weights: 4_086_144,
    parameters: 1_200_000,
    optimizer: 3_600_000,
    intermediates: 21_000_000,
    total: 29_886_144,
  };
  readonly #lines: readonly Line[];
  #log: StepRecord[] = [];

  private constructor(options: TrainOptions, lines: readonly Line[], validation: number) {
    this.#lines = lines;
    const batch = options.batch ?? 8;
    const perEpoch = Math.ceil(lines.length / batch);
    const steps = options.steps ?? perEpoch * 30;
    this.facts = {
      examples: lines.length,
      documents: lines.length,
      tokens: lines.length * 22,
      learntTokens: lines.length * 7,
      stepsPerEpoch: perEpoch,
      parameters: 327_680,
      validation,
      steps,
      unused: [],
      notes: [],
      options: {
        method: {
          rank: options.method?.rank ?? 16,
          alpha: options.method?.alpha ?? 32,
          targets: options.method?.targets ?? 'all',
          dropout: options.method?.dropout ?? 0,
        },
        batch,
        rows: options.rows ?? 512,
        rate: options.rate ?? 2e-3,
        schedule: options.schedule ?? 'cosine',
        warmup: options.warmup ?? 3,
        steps,
        patience: options.patience ?? 3,
        decay: options.decay ?? 2,
        shuffle: options.shuffle ?? true,
        seed: options.seed ?? 0,
      },
    };
  }

  static async of(options: TrainOptions): Promise<Trainer> {
    const lines = await read('data', options.data);
    const validation = options.validation === undefined ? [] : await read('validation', options.validation);
    await pause(20);
    // As the engine does: a line that is too long is left out.
    return new Trainer(options, lines.filter(({ prompt }) => (prompt?.length ?? 0) < 5000), validation.length);
  }

  async examples(count: number): Promise<Piece[][]> {
    return this.#lines.slice(0, count).map(pieces);
  }

  async log(): Promise<StepRecord[]> {
    return [...this.#log];
  }

  async step(work: Work = {}): Promise<StepResult> {
    await progress('step', 176, 4, 10, work as Parameters<typeof progress>[4]);
    if (this.#log.length === 5 && once('lost')) throw new WeftError('device-lost', 'the device was lost');
    const n = this.#log.length + 1;
    const loss = 4.2 * Math.exp(-n / 12) + 0.04 + 0.25 * Math.exp(-n / 30) * Math.abs(Math.sin(n * 2.3));
    const record = { number: n, loss, norm: loss / 2, rate: 2e-3, tokens: 176, validation: null, skipped: false };
    this.#log.push(record);
    // An odd rule, so that the tests see that the page has none of its own.
    const validates = this.facts.validation > 0 && n % 7 === 0;
    return { ...record, targets: 56, seconds: 0.04, validates, ended: this.#ended() };
  }

  async evaluate(_data?: unknown, work: Work = {}): Promise<Evaluation> {
    await pause(10, work.signal);
    const loss = 3.9 * Math.exp(-this.#log.length / 14) + 0.31;
    this.#log[this.#log.length - 1] = { ...this.#log.at(-1)!, validation: loss };
    return { loss, targets: 21, ended: has('patience') && this.#log.length >= 14 ? 'patience' : this.#ended() };
  }

  #ended(): 'flat' | 'steps' | null {
    if (has('flat') && this.#log.length >= 12) return 'flat';
    return this.#log.length >= this.facts.steps ? 'steps' : null;
  }

  async savePeft(): Promise<NamedBytes[]> {
    return [
      { name: 'adapter_config.json', bytes: encoder.encode('{"r": 16}') },
      { name: 'adapter_model.safetensors', bytes: new Uint8Array(4096) },
    ];
  }

  async saveGguf(): Promise<Uint8Array> {
    return encoder.encode('GGUF adapter');
  }

  async checkpoint(): Promise<Uint8Array> {
    return encoder.encode(JSON.stringify(this.#log));
  }

  async restore(bytes: Uint8Array): Promise<void> {
    this.#log = JSON.parse(decoder.decode(bytes)) as StepRecord[];
  }

  async close(): Promise<void> {}
}
