/** Training of an adapter. */
import type { Made, TrainerMethods } from '../protocol.js';
import type { Evaluation, NamedBytes, Piece, StepRecord, StepResult, Text, TrainFacts, TrainMemory, Work } from '../types.js';
import { bytesOf } from './bytes.js';
import type { Connection } from './connection.js';
import { Remote } from './remote.js';

export class Trainer extends Remote<TrainerMethods> {
  readonly facts: TrainFacts;
  /** Bytes that a step needs. */
  readonly memory: TrainMemory;

  /** @internal */
  constructor(connection: Connection, { handle, facts }: Made<{ facts: TrainFacts; memory: TrainMemory }>, model: object) {
    super('trainer', connection, handle, model);
    this.facts = facts.facts;
    this.memory = facts.memory;
  }

  /** The first examples as the model reads them. */
  examples(count: number): Promise<Piece[][]> {
    return this.call('examples', [count]);
  }

  /** The records of all steps, those before a checkpoint too. */
  log(): Promise<StepRecord[]> {
    return this.call('log', []);
  }

  /** One step. A step that is cancelled changes nothing. */
  step(work?: Work): Promise<StepResult> {
    return this.call('step', [], work);
  }

  /** The mean loss of the validation lines, or of these lines. */
  async evaluate(data?: Text, work?: Work): Promise<Evaluation> {
    return this.call('evaluate', [data === undefined ? undefined : await bytesOf(data)], work);
  }

  /** The adapter as PEFT's two files. */
  savePeft(): Promise<NamedBytes[]> {
    return this.call('savePeft', []);
  }

  /** The adapter as a GGUF file. */
  saveGguf(): Promise<Uint8Array> {
    return this.call('saveGguf', []);
  }

  /** Everything that the run needs to go on with the same numbers. */
  checkpoint(): Promise<Uint8Array> {
    return this.call('checkpoint', []);
  }

  /** Goes on from a checkpoint of a run with the same data and options. */
  async restore(bytes: Uint8Array): Promise<void> {
    await this.call('restore', [bytes]);
  }
}
