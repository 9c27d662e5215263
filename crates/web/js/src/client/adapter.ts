/** An adapter beside the weights of a model. */
import { WeftError } from '../error.js';
import type { AdapterMethods, Handle, Made, SentAdapter } from '../protocol.js';
import type { AdapterInfo, AppliedAdapter } from '../types.js';
import type { Connection } from './connection.js';
import { Remote } from './remote.js';

export class Adapter extends Remote<AdapterMethods> {
  readonly info: AdapterInfo;

  /** @internal */
  constructor(connection: Connection, { handle, facts }: Made<AdapterInfo>, model: object) {
    super('adapter', connection, handle, model);
    this.info = facts;
  }
}

/** Adapters as they are sent. All must belong to the model. */
export function sentAdapters(adapters: readonly AppliedAdapter[], model: object | undefined): SentAdapter[] {
  return adapters.map(({ adapter, scale = 1 }): { handle: Handle; scale: number } => {
    if (!(adapter instanceof Adapter) || adapter.owner !== model) {
      throw new WeftError('bad-options', 'an adapter belongs to another model; load it with `model.adapter` of this model');
    }
    return { handle: adapter.handle, scale };
  });
}
