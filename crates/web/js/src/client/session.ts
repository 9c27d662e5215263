/** A conversation. */
import type { Made, SessionMethods } from '../protocol.js';
import type { AnswerOptions, AppliedAdapter, CompleteOptions, Finish, Logits, Message, Token, Work } from '../types.js';
import { sentAdapters } from './adapter.js';
import { tokensOf } from './answer.js';
import type { Connection } from './connection.js';
import { Remote } from './remote.js';

export class Session extends Remote<SessionMethods> {
  /** Tokens of the context. */
  readonly context: number;
  #finish: Finish | undefined;

  /** @internal */
  constructor(connection: Connection, { handle, facts }: Made<{ context: number }>, model: object) {
    super('session', connection, handle, model);
    this.context = facts.context;
  }

  /** The end of the last answer; nothing while an answer runs, and after one that failed. */
  get finish(): Finish | undefined {
    return this.#finish;
  }

  /**
   * Answers a conversation. What its start shares with the tokens so far is not evaluated again.
   * Leaving the loop, or the signal, cancels the answer: `finish.reason` is then `cancelled`.
   */
  send(messages: readonly Message[], options: AnswerOptions = {}): AsyncGenerator<Token, void, undefined> {
    const { onProgress, signal, ...plain } = options;
    return this.#answer((hooks) => this.call('send', [messages, plain], hooks), { onProgress, signal });
  }

  /** Goes on with a raw text instead of a conversation. */
  complete(text: string, options: CompleteOptions = {}): AsyncGenerator<Token, void, undefined> {
    const { onProgress, signal, ...plain } = options;
    return this.#answer((hooks) => this.call('complete', [text, plain], hooks), { onProgress, signal });
  }

  #answer(run: Parameters<typeof tokensOf>[0], work: Work): AsyncGenerator<Token, void, undefined> {
    const begin: typeof run = (hooks) => {
      this.#finish = undefined;
      return run(hooks);
    };
    return tokensOf(begin, work, (finish) => (this.#finish = finish));
  }

  /**
   * Logits [ids, vocabulary] of these ids, which replace the tokens of the session, and the values
   * of its taps.
   */
  logits(ids: ArrayLike<number>, work?: Work): Promise<Logits> {
    return this.call('logits', [Uint32Array.from(ids)], work);
  }

  /** The ids of all tokens so far. */
  tokens(): Promise<Uint32Array> {
    return this.call('tokens', []);
  }

  /** Replaces the adapters. What follows is computed with the new ones. */
  async setAdapters(adapters: readonly AppliedAdapter[]): Promise<void> {
    await this.call('setAdapters', [sentAdapters(adapters, this.owner)]);
  }

  /** Forgets all tokens after the first `tokens`. */
  async rollback(tokens: number): Promise<void> {
    await this.call('rollback', [tokens]);
  }

  /** A snapshot, which `weft run --load-session` reads, too. */
  save(): Promise<Uint8Array> {
    return this.call('save', []);
  }

  /** Goes on from a snapshot of the same model. */
  async load(bytes: Uint8Array): Promise<void> {
    await this.call('load', [bytes]);
  }
}
