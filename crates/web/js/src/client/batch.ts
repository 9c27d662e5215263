/** Several sequences of one model that share every step. */
import type { BatchMethods, Made } from '../protocol.js';
import type { AppliedAdapter, BatchFacts, Drawn, Sampling, Work } from '../types.js';
import { sentAdapters } from './adapter.js';
import type { Connection } from './connection.js';
import { Remote } from './remote.js';

export class Batch extends Remote<BatchMethods> {
  /** Tokens of the context of each sequence. */
  readonly context: number;
  /** Number of sequences, which are numbered from 0. */
  readonly sequences: number;

  /** @internal */
  constructor(connection: Connection, { handle, facts }: Made<BatchFacts>, model: object) {
    super('batch', connection, handle, model);
    this.context = facts.context;
    this.sequences = facts.sequences;
  }

  /** Appends ids to a sequence. The next step evaluates them. */
  async feed(sequence: number, ids: ArrayLike<number>): Promise<void> {
    await this.call('feed', [sequence, Uint32Array.from(ids)]);
  }

  /**
   * Evaluates what was fed, and draws a token for each sequence that is not empty and has room for
   * one more. Nothing is drawn if there is none. `sampling` is for all sequences; of a list the
   * last one is also for all sequences behind it.
   */
  step(sampling: Sampling | readonly Sampling[] = {}, work?: Work): Promise<Drawn[]> {
    return this.call('step', [sampling], work);
  }

  /** The ids of a sequence so far. */
  tokens(sequence: number): Promise<Uint32Array> {
    return this.call('tokens', [sequence]);
  }

  /** Forgets all tokens of a sequence after the first `tokens`. */
  async rollback(sequence: number, tokens: number): Promise<void> {
    await this.call('rollback', [sequence, tokens]);
  }

  /** Empties a sequence. It takes part in no step until it is fed again. */
  async release(sequence: number): Promise<void> {
    await this.rollback(sequence, 0);
  }

  /** Replaces the adapters of all sequences. What follows is computed with the new ones. */
  async setAdapters(adapters: readonly AppliedAdapter[]): Promise<void> {
    await this.call('setAdapters', [sentAdapters(adapters, this.owner)]);
  }
}
