/** Several sequences that share every step. */
import type { Batch } from '../engine.js';
import type { BatchMethods } from '../protocol.js';
import type * as t from '../types.js';
import type { Call } from './call.js';
import { OnDevice } from './on-device.js';
import type { Serves } from './served.js';

export class BatchObject extends OnDevice<Batch> implements Serves<BatchMethods> {
  tokens(_call: Call, sequence: number): Uint32Array {
    return this.inner.tokens(sequence);
  }

  feed(_call: Call, sequence: number, ids: Uint32Array): void {
    this.inner.feed(sequence, ids);
  }

  rollback(_call: Call, sequence: number, tokens: number): void {
    this.inner.rollback(sequence, tokens);
  }

  step(call: Call, sampling: t.Sampling | readonly t.Sampling[]): Promise<t.Drawn[]> {
    call.check();
    return this.cancellable(call, (cancel) => this.inner.step(sampling, cancel));
  }
}
