/** A conversation as a file: Markdown to read, JSON for programs. */
import type { Conversation, Turn } from '../store/conversations.js';
import { messagesOf } from '../store/conversations.js';
import { h } from '../ui/dom.js';
import { openDialog } from '../ui/dialog.js';
import { download, fileName } from '../ui/files.js';

const SPEAKERS: Record<Turn['role'], string> = { user: 'You', assistant: 'Model', tool: 'Tool' };

/** A fence that the text cannot end. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

export function toMarkdown(conversation: Conversation): string {
  const parts = [`# ${conversation.title}`, new Date(conversation.created).toISOString().slice(0, 10)];
  if (conversation.system.trim() !== '') parts.push('## System', conversation.system);
  for (const turn of conversation.turns) {
    parts.push(`## ${SPEAKERS[turn.role]}`);
    if (turn.thinking) parts.push(`<details><summary>Thinking</summary>\n\n${turn.thinking}\n\n</details>`);
    if (turn.content !== '') parts.push(turn.content);
    for (const call of turn.calls ?? []) parts.push(fenced(JSON.stringify(call, null, 2), 'json'));
    if (turn.error) parts.push(`*${turn.error}*`);
  }
  return `${parts.join('\n\n')}\n`;
}

/** The messages are a line of `weft train --data` as they are. */
export function toJson(conversation: Conversation): string {
  const { title, created, updated } = conversation;
  const exported = {
    title,
    created: new Date(created).toISOString(),
    updated: new Date(updated).toISOString(),
    messages: messagesOf(conversation),
    turns: conversation.turns,
  };
  return `${JSON.stringify(exported, null, 2)}\n`;
}

export function openExport(conversation: Conversation): void {
  const save = (ending: string, text: (of: Conversation) => string, type: string) => () => {
    download(fileName(conversation.title, ending), text(conversation), type);
    dialog.close();
  };
  const dialog = openDialog(
    'Export the conversation',
    'middle',
    h('p', { class: 'muted' }, 'The file stays on this device.'),
    h(
      'div',
      { class: 'row' },
      h('button', { type: 'button', onclick: save('md', toMarkdown, 'text/markdown') }, 'Markdown'),
      h('button', { type: 'button', onclick: save('json', toJson, 'application/json') }, 'JSON'),
    ),
  );
}
