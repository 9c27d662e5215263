/** The field for a question, with its send and stop button. */
import { host } from '../models/host.js';
import { h, show } from '../ui/dom.js';
import { bytes } from '../ui/format.js';
import { icon } from '../ui/icons.js';
import { tellError } from '../ui/notice.js';
import { chat } from './chat.js';

const MOST_ROWS = 10;

export interface Composer {
  readonly node: HTMLElement;
  focus(): void;
}

/** Where the model computes, and the memory that it takes. */
async function describeHost(): Promise<string> {
  const { ready } = host;
  if (ready === undefined) return 'Everything is computed on this device.';
  const { wasm, gpu } = await ready.model.memory();
  const place = ready.model.info.executor === 'gpu' ? 'the GPU' : 'the CPU';
  return `Computed on ${place} of this device, with ${bytes(wasm + gpu)} of memory. Answers can be wrong.`;
}

export function composer(): Composer {
  const input = h('textarea', {
    id: 'question',
    rows: 1,
    placeholder: 'Write a question',
    'aria-label': 'Your question',
  });
  const send = h('button', { type: 'submit', class: 'primary round', 'aria-label': 'Send' }, icon('send'));
  const stop = h(
    'button',
    {
      type: 'button',
      class: 'primary round',
      'aria-label': 'Stop the answer',
      hidden: true,
      onclick: () => void chat.stop(),
    },
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
    const focused = document.activeElement;
    show(send, turn === undefined);
    show(stop, turn !== undefined);
    // The pressed button went away. On a touch screen the field would bring up the keyboard.
    if (turn !== undefined && focused === document.body) stop.focus();
    if (turn === undefined && focused === stop && matchMedia('(hover: hover)').matches) input.focus();
  });
  let idle = '';
  const describe = () => {
    status.textContent = chat.status.value || idle;
  };
  const measure = async () => {
    idle = await describeHost();
    describe();
  };
  chat.status.watch(describe);
  host.state.watch(() => void measure().catch(tellError));
  chat.changes.watch(() => void measure().catch(tellError));

  const node = h(
    'form',
    { class: 'composer', onsubmit: submit },
    h('div', { class: 'composer-box' }, input, send, stop),
    status,
  );
  return { node, focus: () => input.focus() };
}
