/** The field for a question, with its send and stop button. */
import { host } from '../models/host.js';
import { h, show } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { chat } from './chat.js';

const MOST_ROWS = 10;

export interface Composer {
  readonly node: HTMLElement;
  focus(): void;
}

export function composer(): Composer {
  const input = h('textarea', { id: 'question', rows: 1, placeholder: 'Ask something', 'aria-label': 'Your question' });
  const send = h('button', { type: 'submit', class: 'primary round', 'aria-label': 'Send' }, icon('send'));
  const stop = h(
    'button',
    { type: 'button', class: 'primary round', 'aria-label': 'Stop the answer', hidden: true, onclick: () => void chat.stop() },
    icon('stop'),
  );
  const status = h('p', { class: 'status muted' });

  const resize = () => {
    // Browsers with `field-sizing` grow the field themselves.
    if (!CSS.supports('field-sizing', 'content')) input.rows = Math.min(MOST_ROWS, input.value.split('\n').length);
    send.disabled = input.value.trim() === '' || host.ready === undefined;
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text === '' || host.ready === undefined || chat.answering.value !== undefined) return;
    input.value = '';
    resize();
    void chat.send(text);
  };
  input.addEventListener('input', resize);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === 'Escape' && chat.answering.value !== undefined) void chat.stop();
  });

  host.state.watch(resize);
  chat.answering.watch((turn) => {
    const focused = document.activeElement === stop;
    show(send, turn === undefined);
    show(stop, turn !== undefined);
    if (focused && turn === undefined) input.focus();
  });
  chat.status.watch((text) => {
    status.textContent = text || 'Everything is computed on this device. Answers can be wrong.';
  });

  const node = h('form', { class: 'composer', onsubmit: submit }, h('div', { class: 'composer-box' }, input, send, stop), status);
  return { node, focus: () => input.focus() };
}
