/** Dialogs: the browser's own, which keep the focus inside and close by Escape. */
import { freshId, h, type Child } from './dom.js';
import { icon } from './icons.js';

/** Opens a dialog and takes it out of the page when it closes. */
export function openDialog(title: string, kind: 'side' | 'middle', ...children: readonly Child[]): HTMLDialogElement {
  const id = freshId('title');
  const dialog: HTMLDialogElement = h(
    'dialog',
    { class: `dialog ${kind}`, 'aria-labelledby': id },
    h(
      'header',
      { class: 'dialog-head' },
      h('h2', { id }, title),
      h(
        'button',
        { type: 'button', class: 'bare', 'aria-label': `Close: ${title}`, onclick: () => dialog.close() },
        icon('close'),
      ),
    ),
    h('div', { class: 'dialog-body' }, ...children),
  );
  // A press on the backdrop has the dialog itself as its target.
  dialog.addEventListener('mousedown', (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks before something is lost. */
export function confirmed(question: string, action: string): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = false;
    const choose = (value: boolean) => () => {
      answer = value;
      dialog.close();
    };
    const dialog = openDialog(
      question,
      'middle',
      h(
        'div',
        { class: 'row end' },
        h('button', { type: 'button', autofocus: true, onclick: choose(false) }, 'Cancel'),
        h('button', { type: 'button', class: 'danger', onclick: choose(true) }, action),
      ),
    );
    dialog.addEventListener('close', () => resolve(answer));
  });
}

/** Asks for one line of text. */
export function asked(title: string, label: string, value: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer: string | undefined;
    const input = h('input', { type: 'text', value, maxlength: 120, autofocus: true });
    const accept = (event: Event) => {
      event.preventDefault();
      answer = input.value.trim() || undefined;
      dialog.close();
    };
    const dialog = openDialog(
      title,
      'middle',
      h(
        'form',
        { onsubmit: accept },
        h('label', { class: 'field' }, h('span', {}, label), input),
        h('div', { class: 'row end' }, h('button', { type: 'submit', class: 'primary' }, 'Save')),
      ),
    );
    input.select();
    dialog.addEventListener('close', () => resolve(answer));
  });
}
