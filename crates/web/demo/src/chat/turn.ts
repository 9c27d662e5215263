/** One turn of a conversation in the page. */
import type { Ending, Turn } from '../store/conversations.js';
import { Markdown } from '../markdown/render.js';
import { h, show } from '../ui/dom.js';
import { count, counted, perSecond } from '../ui/format.js';
import { icon, type Icon } from '../ui/icons.js';
import { chat } from './chat.js';

const ENDINGS: Record<Ending['reason'], string> = {
  end: '',
  stop: 'ended at a stop text',
  length: 'cut at the limit of tokens',
  context: 'cut: the context is full',
  cancelled: 'stopped',
  interrupted: 'interrupted: the tab was closed',
};

function action(name: Icon, label: string, run: () => void): HTMLButtonElement {
  return h(
    'button',
    { type: 'button', class: 'bare small', 'aria-label': label, title: label, onclick: run },
    icon(name),
  );
}

function facts({ reason, tokens, seconds, promptTokens, evaluatedTokens }: Ending): string {
  const reused = promptTokens - evaluatedTokens;
  return [
    ENDINGS[reason],
    tokens > 0 && counted(tokens, 'token'),
    tokens > 1 && perSecond(tokens, seconds),
    reused > 0 && `${count(reused)} of ${count(promptTokens)} prompt tokens reused`,
  ]
    .filter(Boolean)
    .join(' · ');
}

export interface TurnView {
  readonly turn: Turn;
  readonly node: HTMLElement;
  update(): void;
}

class QuestionView implements TurnView {
  readonly turn: Turn;
  readonly node: HTMLElement;

  constructor(turn: Turn) {
    this.turn = turn;
    const name = turn.role === 'tool' ? 'Result of the tool' : 'You';
    this.node = h('article', { class: `turn ${turn.role}`, 'aria-label': name });
    this.#read();
  }

  update(): void {}

  #read(): void {
    this.node.replaceChildren(
      h('div', { class: 'bubble' }, this.turn.content),
      h(
        'div',
        { class: 'turn-actions' },
        this.turn.role === 'user' && action('edit', 'Edit and send again', () => this.#write()),
        action('copy', 'Copy the question', () => void navigator.clipboard.writeText(this.turn.content)),
      ),
    );
  }

  #write(): void {
    const input = h('textarea', { class: 'grows', 'aria-label': 'Your question', rows: 3 }, this.turn.content);
    const cancel = () => {
      this.#read();
      this.node.querySelector('button')?.focus();
    };
    const send = (event: Event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (text !== '') void chat.edit(this.turn, text);
    };
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') cancel();
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send(event);
    });
    this.node.replaceChildren(
      h(
        'form',
        { class: 'edit', onsubmit: send },
        input,
        h('p', { class: 'muted' }, 'What came after this question is replaced.'),
        h(
          'div',
          { class: 'row end' },
          h('button', { type: 'button', onclick: cancel }, 'Cancel'),
          h('button', { type: 'submit', class: 'primary' }, 'Send'),
        ),
      ),
    );
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
  }
}

class AnswerView implements TurnView {
  readonly turn: Turn;
  readonly node: HTMLElement;
  readonly #markdown = new Markdown();
  readonly #thought = h('div', { class: 'thought' });
  readonly #summary = h('summary');
  readonly #thinking = h('details', { class: 'thinking', hidden: true }, this.#summary, this.#thought);
  readonly #calls = h('div', { class: 'calls' });
  readonly #error = h('p', { class: 'error', hidden: true });
  readonly #waits = h('p', { class: 'waits', 'aria-hidden': 'true' }, h('i'), h('i'), h('i'));
  readonly #facts = h('span', { class: 'muted' });
  readonly #foot: HTMLElement;

  constructor(turn: Turn) {
    this.turn = turn;
    this.#foot = h(
      'div',
      { class: 'turn-actions' },
      action('copy', 'Copy the answer', () => void navigator.clipboard.writeText(turn.content)),
      action('retry', 'Answer again', () => void chat.retry(turn)),
      this.#facts,
    );
    this.node = h(
      'article',
      { class: 'turn assistant', 'aria-label': 'Answer' },
      this.#thinking,
      this.#markdown.node,
      this.#calls,
      this.#waits,
      this.#error,
      this.#foot,
    );
    this.update();
  }

  update(): void {
    const { turn } = this;
    const ended = turn.ending !== undefined || turn.error !== undefined;
    this.#markdown.set(turn.content);
    show(this.#thinking, Boolean(turn.thinking));
    if (turn.thinking) {
      this.#thought.textContent = turn.thinking;
      this.#summary.textContent = ended || turn.content !== '' ? 'Thinking' : 'Thinks…';
    }
    if (turn.calls && this.#calls.childElementCount === 0) this.#showCalls();
    show(this.#waits, !ended && turn.content === '');
    show(this.#error, turn.error !== undefined);
    this.#error.textContent = turn.error ?? '';
    show(this.#foot, ended);
    this.#facts.textContent = turn.ending ? facts(turn.ending) : '';
  }

  /** Calls of tools. The page runs none: the person gives the result. */
  #showCalls(): void {
    for (const call of this.turn.calls ?? []) {
      const pre = h(
        'pre',
        { tabindex: 0, role: 'region', 'aria-label': 'Arguments' },
        JSON.stringify(call.arguments, null, 2),
      );
      this.#calls.append(h('div', { class: 'call' }, h('p', {}, 'Calls ', h('code', {}, call.name)), pre));
    }
    if (chat.conversation.value.turns.at(-1) !== this.turn) return;
    const input = h('textarea', { class: 'grows', rows: 2, required: true });
    const give = (event: Event) => {
      event.preventDefault();
      form.remove();
      void chat.giveResult(input.value);
    };
    const form = h(
      'form',
      { class: 'result', onsubmit: give },
      h('label', { class: 'field' }, h('span', {}, 'Result of the tool'), input),
      h('div', { class: 'row end' }, h('button', { type: 'submit', class: 'primary' }, 'Give the result')),
    );
    this.#calls.append(form);
  }
}

export function turnView(turn: Turn): TurnView {
  return turn.role === 'assistant' ? new AnswerView(turn) : new QuestionView(turn);
}
