/** Asks the model without and with what it has learnt so far, side by side, at any step. */
import type { Session } from '../engine/api.js';
import { isCancelled, sentenceOf } from '../engine/errors.js';
import { Markdown } from '../markdown/render.js';
import { host } from '../models/host.js';
import { announce } from '../ui/announce.js';
import { h, show } from '../ui/dom.js';
import { run } from './run.js';

const CONTEXT = 1024;
const MOST_TOKENS = 256;

class Pane {
  readonly node: HTMLElement;
  #markdown = new Markdown();
  readonly #title: string;

  constructor(title: string) {
    this.#title = title;
    this.node = h('section', { class: 'pane', 'aria-label': title });
    this.clear();
  }

  clear(): void {
    this.#markdown = new Markdown();
    this.node.replaceChildren(h('h3', {}, this.#title), this.#markdown.node);
  }

  async answer(session: Session, question: string, signal: AbortSignal): Promise<void> {
    let text = '';
    const options = { sampling: { temperature: 0 }, maxTokens: MOST_TOKENS, signal };
    for await (const token of session.send([{ role: 'user', content: question }], options)) {
      text += token.text;
      this.#markdown.set(text);
    }
    announce(`${this.#title}: ${text}`);
  }
}

/** Answers with and without the factors. The next step of the run waits for both answers. */
async function both(question: string, base: Pane, taught: Pane, signal: AbortSignal): Promise<void> {
  const { ready } = host;
  if (ready === undefined || run.trainer === undefined) return;
  const { trainer } = run;
  await host.exclusive(async () => {
    signal.throwIfAborted();
    const { model } = ready;
    const context = Math.min(CONTEXT, model.info.contextLength);
    const session = await model.session({ context });
    const adapter = await model.adapter(await trainer.savePeft());
    const adapted = await model.session({ context, adapters: [{ adapter, scale: 1 }] });
    try {
      await base.answer(session, question, signal);
      await taught.answer(adapted, question, signal);
    } finally {
      await session.close();
      await adapted.close();
      await adapter.close();
    }
  });
}

export function compareSection(): HTMLElement {
  const input = h('input', {
    type: 'text',
    required: true,
    placeholder: 'Who lives in Kelm?',
    'aria-label': 'Question to compare',
  });
  const ask = h('button', { type: 'submit' }, 'Ask both');
  const stop = h('button', { type: 'button', hidden: true }, 'Stop');
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  const [base, taught] = [new Pane('Without the adapter'), new Pane('With the adapter')];
  const panes = h('div', { class: 'panes', hidden: true }, base.node, taught.node);
  let cancel = new AbortController();
  stop.onclick = () => cancel.abort();

  const submit = async (event: Event) => {
    event.preventDefault();
    cancel = new AbortController();
    for (const pane of [base, taught]) pane.clear();
    show(panes, true);
    panes.scrollIntoView({ block: 'nearest' });
    show(error, false);
    show(ask, false);
    show(stop, true);
    try {
      await both(input.value, base, taught, cancel.signal);
    } catch (failed) {
      if (!isCancelled(failed)) {
        error.textContent = sentenceOf(failed);
        show(error, true);
      }
    } finally {
      show(ask, true);
      show(stop, false);
      panes.scrollIntoView({ block: 'nearest' });
    }
  };
  const form = h('form', { class: 'joined', onsubmit: (event: Event) => void submit(event) }, input, ask, stop);
  return h('section', {}, h('h2', {}, 'Compare'), form, error, panes);
}
