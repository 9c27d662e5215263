/** The model in the header: its name, its progress, and one line if it could not be loaded. */
import { announce } from '../ui/announce.js';
import { h, show } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { describeProgress } from '../ui/progress.js';
import { host, type State } from './host.js';
import { openModels } from './picker.js';

function label(state: State): string {
  return state.kind === 'none' ? 'Choose a model' : state.choice.name;
}

export function modelButton(): HTMLElement {
  const name = h('span', { class: 'title' });
  const dot = h('span', { class: 'dot', 'aria-hidden': 'true' });
  const state = h('span', { class: 'unseen' });
  const button = h(
    'button',
    { type: 'button', class: 'model-button', onclick: openModels },
    dot,
    name,
    state,
    icon('down'),
  );
  host.state.watch((value) => {
    name.textContent = label(value);
    dot.className = `dot ${value.kind}`;
    state.textContent = { none: '', loading: ' (loads)', ready: ' (model, ready)', failed: ' (not loaded)' }[
      value.kind
    ];
  });
  return button;
}

/** The bar under the header while a model loads, or after it failed. */
export function modelBanner(): HTMLElement {
  const text = h('p');
  const bar = h('progress', { 'aria-label': 'Progress of the model' });
  const stop = h('button', { type: 'button', class: 'small', onclick: () => host.cancel() }, 'Cancel');
  const again = h('button', { type: 'button', class: 'small' }, 'Try again');
  const back = h('button', { type: 'button', class: 'small' });
  const node = h('div', { class: 'banner' }, text, bar, stop, again, back);
  const onClick = (button: HTMLButtonElement, run: () => void) => (button.onclick = run);

  let kind: State['kind'] = 'none';
  host.state.watch((state) => {
    show(node, state.kind === 'loading' || state.kind === 'failed');
    node.classList.toggle('bad', state.kind === 'failed');
    show(bar, state.kind === 'loading');
    show(stop, state.kind === 'loading');
    show(again, state.kind === 'failed');
    const earlier = state.kind === 'failed' ? state.earlier : undefined;
    show(back, earlier !== undefined);
    if (state.kind === 'loading') {
      text.textContent = state.progress ? describeProgress(state.progress) : `Opens ${state.choice.name}`;
      if (state.progress && state.progress.total > 0) bar.value = state.progress.done / state.progress.total;
      else bar.removeAttribute('value');
    }
    if (state.kind === 'failed') {
      const { choice, sentence } = state;
      text.textContent = sentence.includes(choice.name) ? sentence : `${choice.name}: ${sentence}`;
      onClick(again, () => void host.load(state.choice));
      if (earlier) {
        back.textContent = `Back to ${earlier.name}`;
        onClick(back, () => void host.load(earlier));
      }
    }
    if (kind !== state.kind) {
      if (state.kind === 'loading') announce(`Loads ${state.choice.name}.`);
      if (state.kind === 'ready') announce(`${state.choice.name} is ready.`);
      if (state.kind === 'failed') announce(text.textContent ?? '');
    }
    kind = state.kind;
  });
  return node;
}
