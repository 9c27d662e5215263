/** The part of the view Teach where data come in: pasted, dropped, picked, or the examples. */
import facts from '../../../../../examples/facts.jsonl?raw';
import { Kept } from '../store/values.js';
import { h, show } from '../ui/dom.js';
import { acceptDrops, pickFiles, type Picked } from '../ui/files.js';
import { bytes, counted } from '../ui/format.js';
import { tell, tellError } from '../ui/notice.js';
import { checkData, type Checked, type LineError } from './lines.js';

/** A longer text is not put into the field: the field would make the page slow. */
const MOST_SHOWN = 200_000;
const MOST_BYTES = 256e6;
const MOST_ERRORS = 20;
const CHECK_AFTER_MS = 250;

const kept = new Kept<string>('run data', '');

/** The text of a file; one that gzip has packed is unpacked. */
async function textOf(file: File): Promise<string> {
  if (file.size > MOST_BYTES) {
    throw new Error(`${file.name} has ${bytes(file.size)}, a page takes ${bytes(MOST_BYTES)}; use weft train for more`);
  }
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (first !== 0x1f || second !== 0x8b) return file.text();
  return new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

export class DataPanel {
  readonly node: HTMLElement;
  checked: Checked = checkData('');
  #text = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #input = h('textarea', {
    class: 'data mono',
    rows: 8,
    spellcheck: 'false',
    'aria-label': 'Examples, one a line',
    placeholder: '{"prompt": "Who lives in Kelm?", "completion": "Hanne lives in Kelm."}',
  });
  readonly #status = h('p', { class: 'muted', role: 'status' });
  readonly #errors = h('ul', { class: 'line-errors' });
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
    this.#input.addEventListener('input', () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#set(this.#input.value), CHECK_AFTER_MS);
    });
    const pick = async () => this.#take(await pickFiles('.jsonl,.json,.gz'));
    const button = (label: string, run: () => void) => h('button', { type: 'button', onclick: run }, label);
    this.node = h(
      'section',
      { class: 'data-panel' },
      h('h2', {}, 'Examples'),
      h(
        'p',
        { class: 'muted' },
        'One JSON object a line, with prompt and completion, messages, or text. Paste them, or drop a file.',
      ),
      this.#input,
      h(
        'div',
        { class: 'row' },
        button('Choose a file', () => void pick().catch(tellError)),
        button('Use 20 facts', () => this.put(facts)),
        button('Clear', () => this.put('')),
      ),
      this.#status,
      this.#errors,
    );
    acceptDrops(this.node, (files) => void this.#take(files).catch(tellError));
    this.#describe();
  }

  async restore(): Promise<void> {
    const text = await kept.get();
    if (text !== '' && this.#text === '') this.put(text);
  }

  async #take(files: readonly Picked[]): Promise<void> {
    if (files.length === 0) return;
    const texts = await Promise.all(files.map(({ file }) => textOf(file)));
    this.put(texts.join('\n'));
  }

  put(text: string): void {
    const whole = text.length <= MOST_SHOWN;
    this.#input.value = whole ? text : text.slice(0, MOST_SHOWN);
    this.#input.readOnly = !whole;
    if (!whole) tell('The field shows only the start of this long file. All of it is used.');
    this.#set(text);
  }

  #set(text: string): void {
    this.#text = text;
    this.checked = checkData(text);
    this.#describe();
    // A text that the browser has no space for is only not there after a reload.
    kept.set(text).catch((error: unknown) => console.warn(error));
    this.#changed();
  }

  /** Shows an error that the engine found. */
  showError(error: LineError): void {
    this.#errors.replaceChildren(this.#errorItem(error));
  }

  #describe(): void {
    const { examples, errors } = this.checked;
    const found = examples.length + errors.length === 0 ? 'No example yet.' : counted(examples.length, 'example');
    this.#status.textContent = errors.length === 0 ? found : `${found}, ${counted(errors.length, 'error')}.`;
    const rest = errors.length - MOST_ERRORS;
    this.#errors.replaceChildren(...errors.slice(0, MOST_ERRORS).map((error) => this.#errorItem(error)));
    if (rest > 0) this.#errors.append(h('li', { class: 'muted' }, `and ${counted(rest, 'more error')}`));
    show(this.#errors, errors.length > 0);
  }

  #errorItem({ line, sentence }: LineError): HTMLElement {
    show(this.#errors, true);
    const go = () => this.#select(line);
    const label = `${this.checked.unit} ${line}`;
    const name =
      this.checked.unit === 'Line' ? h('button', { type: 'button', class: 'link', onclick: go }, label) : label;
    // A sentence of the engine begins with a colon.
    return h('li', { class: 'error' }, name, sentence.startsWith(':') ? sentence : ` ${sentence}`);
  }

  #select(line: number): void {
    const lines = this.#input.value.split('\n');
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.#input.focus();
    this.#input.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  }
}
