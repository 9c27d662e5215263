/** The settings of a run. What is empty is the engine's default, which a checked run tells. */
import type { TrainFacts, TrainOptions } from '@weft-llm/web';
import { freshId, h, show } from '../ui/dom.js';
import { Kept } from '../store/values.js';

export interface RunOptions {
  readonly steps?: number;
  readonly rate?: number;
  readonly batch?: number;
  readonly heldOut?: number;
  readonly rank?: number;
  readonly alpha?: number;
  readonly targets?: string;
  readonly dropout?: number;
  readonly length?: number;
  readonly rows?: number;
  readonly schedule?: NonNullable<TrainOptions['schedule']>;
  readonly warmup?: number;
  readonly patience?: number;
  readonly decay?: number;
  readonly seed?: number;
  readonly learn?: NonNullable<TrainOptions['learn']>;
}

type Key = keyof RunOptions;

interface Field {
  readonly key: Key;
  readonly label: string;
  readonly hint: string;
  readonly min?: number;
  readonly step?: number | 'any';
  readonly choices?: readonly string[];
}

const MAIN: readonly Field[] = [
  { key: 'steps', label: 'Steps', hint: 'Empty: as many as the examples need.', min: 1, step: 1 },
  { key: 'rate', label: 'Rate', hint: 'A loss that jumps up asks for less.', min: 0, step: 'any' },
  { key: 'batch', label: 'Examples of a step', hint: 'More are steadier, and want a larger rate.', min: 1, step: 1 },
  { key: 'heldOut', label: 'Held-out examples', hint: 'Measured and not learnt; 0 for none.', min: 0, step: 1 },
];
const MORE: readonly Field[] = [
  { key: 'rank', label: 'Rank', hint: 'Numbers for each row and column.', min: 1, step: 1 },
  { key: 'alpha', label: 'Alpha', hint: 'One to two times the rank.', min: 0, step: 'any' },
  { key: 'targets', label: 'Targets', hint: 'all, attn, mlp, or names with commas' },
  { key: 'dropout', label: 'Dropout', hint: '0.05 to 0.1 against learning by heart.', min: 0, step: 'any' },
  { key: 'length', label: 'Longest example, tokens', hint: 'A longer one is cut.', min: 8, step: 1 },
  { key: 'rows', label: 'Tokens computed at once', hint: 'Fewer take less memory.', min: 8, step: 1 },
  { key: 'schedule', label: 'Schedule', hint: 'How the rate falls.', choices: ['cosine', 'linear', 'constant'] },
  { key: 'warmup', label: 'Warm-up, steps', hint: 'The rate rises first.', min: 0, step: 1 },
  { key: 'patience', label: 'Patience', hint: 'Held-out losses without a better one that end the run; 0 for none.', min: 0, step: 1 },
  { key: 'decay', label: 'Decay', hint: 'Larger harms other answers less.', min: 0, step: 'any' },
  { key: 'seed', label: 'Seed', hint: 'Equal seeds give equal runs.', min: 0, step: 1 },
  { key: 'learn', label: 'Learns', hint: 'Which tokens are learnt.', choices: ['completions', 'all'] },
];

/** The options for the engine. */
export function trainOptions({
  rank,
  alpha,
  targets,
  dropout,
  heldOut: _,
  ...rest
}: RunOptions): Omit<TrainOptions, 'data'> {
  const names = targets
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const chosen = names !== undefined && names.length === 1 ? names[0] : names;
  const method = Object.fromEntries(
    Object.entries({ rank, alpha, targets: chosen, dropout }).filter(([, value]) => value !== undefined),
  );
  return { ...rest, method };
}

const kept = new Kept<RunOptions>('run options', {});

export class OptionsForm {
  readonly node: HTMLElement;
  #value: RunOptions = {};
  readonly #inputs = new Map<Key, HTMLInputElement | HTMLSelectElement>();
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
    this.node = h(
      'div',
      {},
      h('div', { class: 'pairs' }, ...MAIN.map((field) => this.#field(field))),
      h(
        'details',
        { class: 'more' },
        h('summary', {}, 'More settings'),
        h('div', { class: 'pairs' }, ...MORE.map((field) => this.#field(field))),
      ),
    );
  }

  get value(): RunOptions {
    return this.#value;
  }

  set value(value: RunOptions) {
    this.#value = value;
    for (const [key, input] of this.#inputs) input.value = String(value[key] ?? '');
  }

  async restore(): Promise<void> {
    this.value = await kept.get();
  }

  /** Shows the trainer's defaults where nothing is chosen. */
  showDefaults(facts: TrainFacts | undefined): void {
    const method = facts?.options.method as Record<string, unknown> | undefined;
    const defaults: Record<string, unknown> = { ...facts?.options, ...method, heldOut: facts?.validation };
    for (const [key, input] of this.#inputs) {
      const value = defaults[key];
      const text = String(typeof value === 'number' ? Number(value.toPrecision(4)) : (value ?? 'default'));
      if (input instanceof HTMLInputElement) input.placeholder = text;
      else input.options[0]!.textContent = value === undefined ? 'default' : `default (${text})`;
    }
  }

  #field({ key, label, hint, min, step, choices }: Field): HTMLElement {
    const id = freshId('hint');
    const error = h(
      'small',
      { class: 'error', role: 'alert', hidden: true },
      `A number${min === undefined ? '' : ` from ${min}`}; empty for the default.`,
    );
    const common = { 'aria-describedby': id };
    const input = choices
      ? h(
          'select',
          common,
          h('option', { value: '' }, 'default'),
          ...choices.map((choice) => h('option', { value: choice }, choice)),
        )
      : h('input', { ...common, type: min === undefined ? 'text' : 'number', min, step, placeholder: 'default' });
    this.#inputs.set(key, input);
    input.addEventListener('change', () => {
      const sound = input.checkValidity();
      show(error, !sound);
      input.setAttribute('aria-invalid', String(!sound));
      if (!sound) return;
      const { [key]: _, ...others } = this.#value;
      const value = input.value.trim();
      this.#value = value === '' ? others : { ...others, [key]: min === undefined ? value : Number(value) };
      void kept.set(this.#value);
      this.#changed();
    });
    const named = h('label', {}, h('span', {}, label), input);
    return h('div', { class: 'field' }, named, h('small', { id, class: 'muted' }, hint), error);
  }
}
