/** The loss by step as a picture, with a sentence and a table that say it in words. */
import type { StepRecord } from '@weft-llm/web';
import { h, svg } from '../ui/dom.js';
import { digits } from '../ui/format.js';

const HEIGHT = 220;
const LEFT = 46;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 26;
/** A loss that starts this many times above its end is drawn on a logarithmic axis. */
const LOGARITHMIC_FROM = 12;
const MOST_ROWS = 60;

interface Axis {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

function lossAxis(values: readonly number[]): Axis & { logarithmic: boolean } {
  const finite = values.filter((value) => Number.isFinite(value) && value > 0);
  const low = Math.min(...finite, 1);
  const high = Math.max(...finite, low * 1.01);
  const logarithmic = high / low >= LOGARITHMIC_FROM;
  const from = logarithmic ? Math.log(low) : 0;
  const to = logarithmic ? Math.log(high) : high;
  const place = (value: number) => ((logarithmic ? Math.log(Math.max(value, low)) : value) - from) / (to - from);
  const ticks = [0, 1 / 3, 2 / 3, 1]
    .map((part) => from + part * (to - from))
    .map((tick) => (logarithmic ? Math.exp(tick) : tick));
  return { at: (value) => TOP + (1 - place(value)) * (HEIGHT - TOP - BOTTOM), ticks, logarithmic };
}

function stepAxis(total: number, width: number): Axis {
  const last = Math.max(2, total);
  const ticks = [...new Set([1, Math.round(last / 2), last])];
  return { at: (step) => LEFT + ((step - 1) / (last - 1)) * (width - LEFT - RIGHT), ticks };
}

/** What the picture shows, in one sentence. */
export function summary(log: readonly StepRecord[]): string {
  const first = log[0];
  const last = log.at(-1);
  if (first === undefined || last === undefined) return 'No step yet.';
  const validation = log.filter((entry) => entry.validation !== null).at(-1)?.validation;
  const held = validation == null ? '' : `; held-out loss ${digits(validation)}`;
  return `Loss ${digits(first.loss)} at step ${first.number}, ${digits(last.loss)} at step ${last.number}${held}.`;
}

/** Every step of a short run. Of a long run: equal distances, and every held-out loss. */
function rowsOf(log: readonly StepRecord[]): readonly StepRecord[] {
  const every = Math.ceil(log.length / MOST_ROWS);
  return log.filter((entry, at) => at % every === 0 || at === log.length - 1 || entry.validation !== null);
}

export class Chart {
  readonly node: HTMLElement;
  readonly #picture = svg('svg', { class: 'chart', role: 'img', height: HEIGHT });
  readonly #legend = h('p', { class: 'legend' });
  readonly #body = h('tbody');
  readonly #table: HTMLDetailsElement;
  #log: readonly StepRecord[] = [];
  #total = 1;

  constructor() {
    const head = ['Step', 'Loss', 'Held-out loss', 'Norm', 'Rate'].map((name) => h('th', { scope: 'col' }, name));
    this.#table = h(
      'details',
      { ontoggle: () => this.#fill() },
      h('summary', {}, 'As a table'),
      h(
        'div',
        { class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Losses' },
        h('table', {}, h('thead', {}, h('tr', {}, ...head)), this.#body),
      ),
    );
    this.node = h('figure', { class: 'loss' }, this.#picture, this.#legend, this.#table);
    new ResizeObserver(() => this.#draw()).observe(this.node);
  }

  set(log: readonly StepRecord[], total: number): void {
    this.#log = log;
    this.#total = total;
    this.#draw();
    this.#fill();
  }

  #draw(): void {
    const width = Math.max(240, this.node.clientWidth);
    const validations = this.#log.filter((entry) => entry.validation !== null);
    const y = lossAxis([...this.#log.map(({ loss }) => loss), ...validations.map(({ validation }) => validation!)]);
    const x = stepAxis(Math.max(this.#total, this.#log.at(-1)?.number ?? 1), width);
    // The loss of a skipped step is no number.
    const sound = this.#log.filter(({ loss }) => Number.isFinite(loss));
    const points = (entries: readonly StepRecord[], value: (entry: StepRecord) => number) =>
      entries.map((entry) => `${x.at(entry.number).toFixed(1)},${y.at(value(entry)).toFixed(1)}`).join(' ');
    const lines = y.ticks.map((tick) => {
      const at = y.at(tick);
      return svg(
        'g',
        { class: 'grid' },
        svg('line', { x1: LEFT, x2: width - RIGHT, y1: at, y2: at }),
        svg('text', { x: LEFT - 8, y: at + 4, 'text-anchor': 'end' }, tick === 0 ? '0' : tick < 0.01 ? tick.toExponential(0) : tick.toPrecision(2)),
      );
    });
    const steps = x.ticks.map((tick, at) => {
      const anchor = at === 0 ? 'start' : at === x.ticks.length - 1 ? 'end' : 'middle';
      return svg('text', { class: 'tick', x: x.at(tick), y: HEIGHT - 6, 'text-anchor': anchor }, tick);
    });
    const held = validations.map((entry) =>
      svg('circle', { class: 'held', cx: x.at(entry.number), cy: y.at(entry.validation!), r: 3.5 }),
    );
    // A line of one point is not seen.
    const [only] = this.#log.length === 1 ? sound : [];
    const first = only && svg('circle', { class: 'first', cx: x.at(only.number), cy: y.at(only.loss), r: 3.5 });
    this.#picture.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.#picture.setAttribute('aria-label', `Loss by step. ${summary(this.#log)}`);
    this.#picture.replaceChildren(
      ...lines,
      ...steps,
      svg('polyline', { class: 'trained', points: points(sound, ({ loss }) => loss) }),
      svg('polyline', { class: 'held', points: points(validations, ({ validation }) => validation!) }),
      ...held,
      ...(first ? [first] : []),
    );
    this.#legend.replaceChildren(
      h('span', { class: 'key trained' }, 'loss of the steps'),
      ...(validations.length > 0 ? [h('span', { class: 'key held' }, 'loss of the held-out examples')] : []),
      ...(y.logarithmic ? [h('span', { class: 'muted' }, 'logarithmic')] : []),
    );
  }

  /** The table is filled while it is open. */
  #fill(): void {
    if (!this.#table.open) return;
    const cell = (value: number | null) => h('td', {}, value === null ? '' : digits(value));
    const rows = rowsOf(this.#log).map(({ number, loss, validation, norm, rate }) =>
      h('tr', {}, h('th', { scope: 'row' }, number), cell(loss), cell(validation), cell(norm), cell(rate)),
    );
    this.#body.replaceChildren(...rows);
  }
}
