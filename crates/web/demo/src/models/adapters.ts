/** The adapters of the loaded model: add, scale, remove. */
import { freshId, h } from '../ui/dom.js';
import { acceptDrops, pickFiles } from '../ui/files.js';
import { icon } from '../ui/icons.js';
import { tellError } from '../ui/notice.js';
import { host, type LoadedAdapter } from './host.js';
import { takeFiles } from './take.js';

function adapterRow(one: LoadedAdapter, redraw: () => void): HTMLElement {
  const value = h('output', { class: 'muted' }, one.scale.toFixed(2));
  const scale: HTMLInputElement = h('input', {
    type: 'range',
    min: 0,
    max: 2,
    step: 0.05,
    value: one.scale,
    'aria-label': `Scale of ${one.name}`,
    oninput: () => (value.textContent = Number(scale.value).toFixed(2)),
    onchange: () => void host.setScale(one.adapter, Number(scale.value)).catch(tellError),
  });
  const remove = () => void host.removeAdapter(one.adapter).then(redraw, tellError);
  return h(
    'li',
    { class: 'adapter' },
    h('span', { class: 'title' }, one.name),
    scale,
    value,
    h(
      'button',
      { type: 'button', class: 'bare small', 'aria-label': `Remove ${one.name}`, onclick: remove },
      icon('trash'),
    ),
  );
}

export function adapterSection(): HTMLElement {
  const id = freshId('section');
  const list = h('ul', { class: 'entries' });
  const draw = () => list.replaceChildren(...host.adapters.value.map((one) => adapterRow(one, draw)));
  const take = (files: Parameters<typeof takeFiles>[0]) => void takeFiles(files).then(draw);
  const pick = async () => take(await pickFiles('.gguf,.safetensors,.json'));
  const zone = h(
    'div',
    { class: 'drop small' },
    h('button', { type: 'button', onclick: () => void pick().catch(tellError) }, 'Add an adapter'),
    h('p', { class: 'muted' }, 'PEFT’s two files, or a GGUF file.'),
  );
  acceptDrops(zone, take);
  draw();
  return h('section', { 'aria-labelledby': id }, h('h3', { id }, 'Adapters'), list, zone);
}
