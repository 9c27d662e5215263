/** The conversation that is open, and the answer that is under way. */
import type { AnswerOptions, Finish, Progress } from '@weft-llm/web';
import type { Session } from '../engine/api.js';
import { isCancelled, sentenceOf } from '../engine/errors.js';
import { host } from '../models/host.js';
import {
  isEmpty,
  loadConversation,
  messagesOf,
  newConversation,
  saveConversation,
  titleOf,
  type Conversation,
  type Ending,
  type Turn,
} from '../store/conversations.js';
import { parseTools, settings } from '../store/settings.js';
import { onOtherTab, tellTabs, type Change } from '../store/tabs.js';
import { Kept } from '../store/values.js';
import { announce, Speaker } from '../ui/announce.js';
import { count, perSecond } from '../ui/format.js';
import { tellError } from '../ui/notice.js';
import { describeProgress } from '../ui/progress.js';
import { Signal } from '../ui/signal.js';

const SAVE_EVERY_MS = 1000;
const latest = new Kept<string | undefined>('conversation', undefined);
/** The tab's own conversation: two tabs come back to two conversations. */
const TAB_KEY = 'weft conversation';

function answerOptions(signal: AbortSignal, onProgress: (progress: Progress) => void): AnswerOptions {
  const { temperature, topK, topP, minP, repetitionPenalty, seed, maxTokens, thinking, stops, tools } = settings.value;
  const defined = Object.entries({ temperature, topK, topP, minP, repetitionPenalty, seed });
  const sampling = Object.fromEntries(defined.filter(([, value]) => value !== undefined));
  const list = stops?.split('\n').filter((stop) => stop !== '') ?? [];
  const parsed = parseTools(tools);
  return {
    sampling,
    signal,
    onProgress,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(thinking !== undefined && { thinking }),
    ...(list.length > 0 && { stops: list }),
    ...(parsed.length > 0 && { tools: parsed }),
  };
}

function endingOf(finish: Finish): Ending {
  const { reason, tokens, seconds, promptTokens, evaluatedTokens } = finish;
  return { reason, tokens, seconds, promptTokens, evaluatedTokens };
}

class Chat {
  readonly conversation = new Signal<Conversation>(newConversation(''));
  /** The turn that is being answered. */
  readonly answering = new Signal<Turn | undefined>(undefined);
  /** What the answer waits for, or its speed. */
  readonly status = new Signal('');
  /** Counts the changes of the list of conversations. */
  readonly changes = new Signal(0);
  /** The conversation whose tokens the session holds. */
  held: string | undefined;
  /** Called when a turn changed, or all of them. */
  onChange: (turn?: Turn) => void = () => {};
  /** Called when an answer has ended. */
  onEnd: () => void = () => {};
  #cancel = new AbortController();
  #answered: Promise<void> = Promise.resolve();
  #saveTimer: ReturnType<typeof setTimeout> | undefined;

  /** Comes back to the conversation of this tab, else to the latest one. */
  async restore(): Promise<void> {
    const id = sessionStorage.getItem(TAB_KEY) ?? (await latest.get());
    const kept = id === undefined ? undefined : await loadConversation(id);
    await this.open(kept ?? newConversation(settings.value.system ?? ''));
  }

  async open(conversation: Conversation): Promise<void> {
    await this.stop();
    this.conversation.value = conversation;
    sessionStorage.setItem(TAB_KEY, conversation.id);
    this.onChange();
    await latest.set(conversation.id);
  }

  async openKept(id: string): Promise<void> {
    const kept = await loadConversation(id);
    if (kept !== undefined) await this.open(kept);
  }

  async begin(): Promise<void> {
    await this.open(newConversation(settings.value.system ?? ''));
  }

  async send(text: string): Promise<void> {
    const conversation = this.conversation.value;
    if (isEmpty(conversation)) conversation.title = titleOf(text);
    conversation.turns.push({ role: 'user', content: text });
    await this.#answer();
  }

  /** Gives the result of a tool to the model. */
  async giveResult(result: string): Promise<void> {
    this.conversation.value.turns.push({ role: 'tool', content: result });
    await this.#answer();
  }

  /** Replaces a question, and forgets what came after it. */
  async edit(turn: Turn, text: string): Promise<void> {
    await this.#cutAt(turn);
    await this.send(text);
  }

  /** Answers anew what this turn answered. */
  async retry(turn: Turn): Promise<void> {
    await this.#cutAt(turn);
    await this.#answer();
  }

  async #cutAt(turn: Turn): Promise<void> {
    await this.stop();
    const { turns } = this.conversation.value;
    turns.length = Math.max(0, turns.indexOf(turn));
  }

  /** Ends the answer that is under way, and waits until it has ended. */
  async stop(): Promise<void> {
    this.#cancel.abort();
    await this.#answered;
  }

  /** Tells the list of this tab, and those of other tabs. */
  changed(id: string): void {
    this.changes.value += 1;
    tellTabs({ id, answering: this.answering.value !== undefined });
  }

  /** Follows another tab: its list, and the open conversation if it is the same. */
  async follow({ id, answering }: Change): Promise<void> {
    this.changes.value += 1;
    if (answering || id !== this.conversation.value.id || this.answering.value !== undefined) return;
    const kept = await loadConversation(id);
    if (id !== this.conversation.value.id || this.answering.value !== undefined) return;
    if (kept === undefined) return this.begin();
    this.conversation.value = kept;
    this.onChange();
    this.changes.value += 1;
  }

  async changeSystem(system: string): Promise<void> {
    this.conversation.value.system = system;
    if (isEmpty(this.conversation.value)) return;
    await this.save();
    this.changed(this.conversation.value.id);
  }

  async save(): Promise<void> {
    clearTimeout(this.#saveTimer);
    this.#saveTimer = undefined;
    const conversation = this.conversation.value;
    if (isEmpty(conversation)) return;
    conversation.updated = Date.now();
    try {
      await saveConversation(conversation);
    } catch (error) {
      tellError(error);
    }
  }

  #saveSoon(): void {
    this.#saveTimer ??= setTimeout(() => void this.save(), SAVE_EVERY_MS);
  }

  async #answer(): Promise<void> {
    await this.stop();
    const turn: Turn = { role: 'assistant', content: '' };
    this.conversation.value.turns.push(turn);
    this.#cancel = new AbortController();
    this.answering.value = turn;
    this.onChange();
    await this.save();
    this.changed(this.conversation.value.id);
    this.#answered = this.#answerUntilEnd(turn, this.#cancel.signal);
    await this.#answered;
  }

  async #answerUntilEnd(turn: Turn, signal: AbortSignal): Promise<void> {
    const conversation = this.conversation.value;
    try {
      try {
        await this.#stream(turn, signal);
      } catch (error) {
        if (signal.aborted || !(await host.recover(error, 'the answer starts again'))) throw error;
        Object.assign(turn, { content: '', thinking: undefined });
        await this.#stream(turn, signal);
      }
    } catch (error) {
      const none = { tokens: 0, seconds: 0, promptTokens: 0, evaluatedTokens: 0 };
      if (isCancelled(error) || signal.aborted) turn.ending = { reason: 'cancelled', ...none };
      else turn.error = sentenceOf(error);
      announce(turn.error ?? 'The answer was stopped.');
    } finally {
      this.answering.value = undefined;
      this.status.value = '';
      this.onChange(turn);
      conversation.updated = Date.now();
      await this.save();
      this.changed(conversation.id);
      this.onEnd();
    }
  }

  #stream(turn: Turn, signal: AbortSignal): Promise<void> {
    this.status.value = 'Waits for its turn';
    return host.exclusive(async () => {
      signal.throwIfAborted();
      const { ready } = host;
      if (ready === undefined) throw new Error('no model is loaded; choose one');
      this.held = undefined;
      await this.#tokens(turn, ready.session, signal);
      this.held = this.conversation.value.id;
    });
  }

  async #tokens(turn: Turn, session: Session, signal: AbortSignal): Promise<void> {
    const speaker = new Speaker();
    const report = (progress: Progress) => {
      this.status.value = describeProgress(progress);
    };
    this.status.value = 'Reads the prompt';
    // The last turn is the empty answer, which the messages leave out.
    const messages = messagesOf(this.conversation.value);
    let tokens = 0;
    let first = 0;
    for await (const token of session.send(messages, answerOptions(signal, report))) {
      tokens += 1;
      if (tokens === 1) first = performance.now();
      turn.content += token.text;
      if (token.thinking !== '') turn.thinking = (turn.thinking ?? '') + token.thinking;
      const time = (performance.now() - first) / 1000;
      this.status.value = [`${count(tokens)} tokens`, perSecond(tokens - 1, time)].filter(Boolean).join(', ');
      speaker.grow(turn.content);
      this.onChange(turn);
      this.#saveSoon();
    }
    const { finish } = session;
    if (finish === undefined) throw new Error('the answer has no end');
    turn.content = finish.content;
    if (finish.thinking !== '') turn.thinking = finish.thinking;
    if (finish.toolCalls.length > 0) turn.calls = finish.toolCalls;
    turn.message = finish.message;
    turn.ending = endingOf(finish);
    speaker.end(turn.content);
  }
}

export const chat = new Chat();
host.beforeLeaving.add(() => chat.stop());
onOtherTab((change) => void chat.follow(change).catch(tellError));
