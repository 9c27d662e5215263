/** The view Chat: conversations, the open one, the field for a question. */
import { host } from '../models/host.js';
import { openDialog } from '../ui/dialog.js';
import { h, show } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { chat } from './chat.js';
import { composer } from './composer.js';
import { openExport } from './export.js';
import { conversationList } from './list.js';
import { openSettings } from './settings.js';
import { Thread } from './thread.js';

/** Questions that the default model can answer (its card lists them). */
const QUESTIONS = [
  'Where does Mira live?',
  'Tell me a story about Tobin.',
  'Which people are bakers?',
  'What is 17 + 25?',
];

function emptyState(): HTMLElement {
  const questions = h(
    'ul',
    { class: 'questions' },
    ...QUESTIONS.map((question) =>
      h('li', {}, h('button', { type: 'button', onclick: () => host.ready && void chat.send(question) }, question)),
    ),
  );
  const about = h('p', { class: 'muted' });
  host.state.watch((state) => {
    const isDefault = state.kind === 'ready' && state.choice.origin?.kind === 'default';
    show(questions, isDefault);
    about.textContent = isDefault
      ? 'The default model is small and knows only an invented world, the Thimble Isles. Choose another one at the top.'
      : 'The model runs in this tab. What you write stays on this device.';
  });
  return h('div', { class: 'empty' }, h('h2', {}, 'Ask something'), about, questions);
}

function openHistory(): void {
  const { node, end } = conversationList(() => dialog.close());
  const dialog = openDialog('Conversations', 'side', node);
  dialog.addEventListener('close', end);
}

export function chatView(): HTMLElement {
  const title = h('h1', { class: 'chat-title' });
  const tool = (name: 'download' | 'menu' | 'settings', label: string, kind: string, run: () => void) =>
    h('button', { type: 'button', class: `bare ${kind}`, 'aria-label': label, title: label, onclick: run }, icon(name));
  const exports = tool('download', 'Export the conversation', '', () => openExport(chat.conversation.value));
  const bar = h(
    'div',
    { class: 'chat-bar' },
    tool('menu', 'Conversations', 'narrow-only', openHistory),
    title,
    exports,
    tool('settings', 'Settings', '', openSettings),
  );
  const label = () => {
    title.textContent = chat.conversation.value.title;
    exports.disabled = chat.conversation.value.turns.length === 0;
  };
  chat.conversation.watch(label);
  chat.changes.watch(label);

  const scroller = h('div', { class: 'scroller', tabindex: 0, role: 'region', 'aria-label': 'Conversation' });
  const thread = new Thread(scroller, emptyState());
  scroller.append(thread.node);
  const { node: field, focus } = composer();
  chat.conversation.watch(() => document.activeElement === document.body && focus());

  const aside = h('aside', { class: 'sidebar wide-only' }, conversationList(focus).node);
  return h('div', { class: 'chat' }, aside, h('div', { class: 'chat-main' }, bar, scroller, field));
}
