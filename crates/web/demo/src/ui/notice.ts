/** One-line notices above the page. A notice stays until it is closed or replaced. */
import { sentenceOf } from '../engine/errors.js';
import { announce } from './announce.js';
import { h } from './dom.js';
import { icon } from './icons.js';

const list = h('div', { class: 'notices' });
const MOST = 3;

export interface Action {
  readonly label: string;
  readonly run: () => void;
}

export function notices(): HTMLElement {
  return list;
}

/** Shows a sentence, with a button if there is something to do. Returns what takes it away. */
export function tell(sentence: string, kind: 'plain' | 'bad' = 'plain', action?: Action): () => void {
  const close = (): void => node.remove();
  const node: HTMLElement = h(
    'div',
    { class: `notice ${kind}` },
    h('p', {}, sentence),
    action && h('button', { type: 'button', class: 'small', onclick: () => (close(), action.run()) }, action.label),
    h('button', { type: 'button', class: 'bare', 'aria-label': 'Close the notice', onclick: close }, icon('close')),
  );
  for (const earlier of list.children) {
    if (earlier.querySelector('p')?.textContent === sentence) earlier.remove();
  }
  list.append(node);
  while (list.childElementCount > MOST) list.firstElementChild?.remove();
  announce(sentence);
  return close;
}

export function tellError(error: unknown): void {
  tell(sentenceOf(error), 'bad');
}
