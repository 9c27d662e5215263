/** What all objects of the worker share. */
import type { FromWorker } from '../protocol.js';
import type { Registry } from './served.js';

export interface World {
  readonly registry: Registry;
  readonly post: (message: FromWorker, moved?: Transferable[]) => void;
}
