/** Conversations: what a person and a model said, as it is kept and as the model gets it. */
import type { Message, ToolCall } from '@weft-llm/web';
import { Table } from './database.js';

/** The end of an answer as the page shows it. `interrupted` is an answer whose tab went away. */
export interface Ending {
  readonly reason: 'end' | 'stop' | 'length' | 'context' | 'cancelled' | 'interrupted';
  readonly tokens: number;
  readonly seconds: number;
  readonly promptTokens: number;
  readonly evaluatedTokens: number;
}

export interface Turn {
  readonly role: 'user' | 'assistant' | 'tool';
  content: string;
  thinking?: string;
  calls?: readonly ToolCall[];
  /** The message that the engine gave for an answer: it has every key that the template wants. */
  message?: Message;
  ending?: Ending;
  /** The sentence of the error that ended the answer. */
  error?: string;
}

export interface Conversation {
  readonly id: string;
  title: string;
  readonly created: number;
  updated: number;
  /** The system turn; empty for none. */
  system: string;
  turns: Turn[];
}

const table = new Table<Conversation>('conversations');
const LONGEST_TITLE = 60;

export function newConversation(system: string): Conversation {
  const now = Date.now();
  return { id: crypto.randomUUID(), title: 'New chat', created: now, updated: now, system, turns: [] };
}

export function isEmpty(conversation: Conversation): boolean {
  return conversation.turns.length === 0;
}

/** The start of the first question. */
export function titleOf(question: string): string {
  const line = question.trim().replace(/\s+/g, ' ');
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1)}…`;
}

/** What the model gets. An answer without a word, of an error or an early stop, is left out. */
export function messagesOf(conversation: Conversation): Message[] {
  const messages: Message[] = [];
  if (conversation.system.trim() !== '') messages.push({ role: 'system', content: conversation.system });
  for (const turn of conversation.turns) {
    const silent = turn.role === 'assistant' && turn.content === '' && (turn.calls?.length ?? 0) === 0;
    if (!silent) messages.push(turn.message ?? { role: turn.role, content: turn.content });
  }
  return messages;
}

export function saveConversation(conversation: Conversation): Promise<void> {
  return table.put(conversation.id, conversation);
}

export function deleteConversation(id: string): Promise<void> {
  return table.delete(id);
}

/** A kept conversation. An answer without an end belongs to a tab that went away. */
export async function loadConversation(id: string): Promise<Conversation | undefined> {
  const conversation = await table.get(id);
  const last = conversation?.turns.at(-1);
  if (last?.role === 'assistant' && last.ending === undefined && last.error === undefined) {
    last.ending = { reason: 'interrupted', tokens: 0, seconds: 0, promptTokens: 0, evaluatedTokens: 0 };
  }
  return conversation;
}

/** Every conversation, the latest first. */
export async function listConversations(): Promise<Conversation[]> {
  return (await table.all()).sort((a, b) => b.updated - a.updated);
}
