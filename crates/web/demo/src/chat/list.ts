/** The list of conversations: open, rename, delete, find. */
import { deleteConversation, listConversations, saveConversation, type Conversation } from '../store/conversations.js';
import { deleteSnapshot } from '../store/snapshots.js';
import { asked, confirmed } from '../ui/dialog.js';
import { h, show } from '../ui/dom.js';
import { when } from '../ui/format.js';
import { icon } from '../ui/icons.js';
import { tellError } from '../ui/notice.js';
import { chat } from './chat.js';

/** A list of fewer conversations needs no search. */
const SEARCH_FROM = 6;

async function rename(conversation: Conversation): Promise<void> {
  const title = await asked('Rename the conversation', 'Title', conversation.title);
  if (title === undefined) return;
  const open = chat.conversation.value;
  const target = open.id === conversation.id ? open : conversation;
  target.title = title;
  await saveConversation(target);
  chat.changed(conversation.id);
}

async function remove(conversation: Conversation): Promise<void> {
  if (!(await confirmed(`Delete “${conversation.title}”?`, 'Delete'))) return;
  if (chat.conversation.value.id === conversation.id) await chat.begin();
  await deleteConversation(conversation.id);
  await deleteSnapshot(conversation.id);
  chat.changed(conversation.id);
}

function matches(conversation: Conversation, words: string): boolean {
  const text = [conversation.title, ...conversation.turns.map(({ content }) => content)].join('\n').toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The list; `opened` is called after a conversation was chosen. Returns the node and its end. */
export function conversationList(opened: () => void): { node: HTMLElement; end: () => void } {
  const search = h('input', {
    type: 'search',
    placeholder: 'Search',
    'aria-label': 'Search conversations',
    oninput: () => void draw(),
  });
  const list = h('ul', { class: 'conversations' });
  const none = h('p', { class: 'muted' }, 'No conversation yet.');

  const item = (conversation: Conversation) => {
    const current = conversation.id === chat.conversation.value.id;
    const tool = (name: 'edit' | 'trash', label: string, run: (of: Conversation) => Promise<void>) =>
      h(
        'button',
        {
          type: 'button',
          class: 'bare small',
          'aria-label': `${label}: ${conversation.title}`,
          title: label,
          onclick: () => void run(conversation).catch(tellError),
        },
        icon(name),
      );
    return h(
      'li',
      { class: current && 'current' },
      h(
        'button',
        {
          type: 'button',
          class: 'conversation',
          'aria-current': current && 'true',
          onclick: () => void chat.openKept(conversation.id).then(opened),
        },
        h('span', { class: 'title' }, conversation.title),
        h('span', { class: 'muted' }, when(conversation.updated)),
      ),
      tool('edit', 'Rename', rename),
      tool('trash', 'Delete', remove),
    );
  };
  const draw = async () => {
    const all = await listConversations();
    const found = all.filter((conversation) => matches(conversation, search.value.trim()));
    list.replaceChildren(...found.map(item));
    show(search, all.length >= SEARCH_FROM);
    show(none, found.length === 0);
    show(list, found.length > 0);
    none.textContent = all.length === 0 ? 'No conversation yet.' : 'No conversation has these words.';
  };
  const redraw = () => void draw().catch(tellError);
  const ends = [chat.changes.watch(redraw), chat.conversation.watch(redraw)];
  const start = h(
    'button',
    { type: 'button', class: 'wide', onclick: () => void chat.begin().then(opened) },
    icon('add'),
    'New chat',
  );
  const node = h('nav', { class: 'history', 'aria-label': 'Conversations' }, start, search, list, none);
  return { node, end: () => ends.forEach((end) => end()) };
}
