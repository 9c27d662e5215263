/** Objects that the page has handles of. */
import type { Handle } from '../protocol.js';
import type { Call } from './call.js';
import { Queue } from './queue.js';

/** The methods of an object as the worker has them: each gets its call first. */
export type Serves<M> = {
  [K in Exclude<keyof M, 'close'>]: M[K] extends (...args: infer A) => infer R ? (call: Call, ...args: A) => R | Promise<R> : never;
};

/** An object of the worker. Its calls run one after the other. */
export abstract class Served {
  readonly queue = new Queue();
  readonly calls = new Set<Call>();
  /** Objects that cannot be without this one. */
  readonly children = new Set<Served>();
  /** The object that this one is a child of. */
  readonly parent: Served | undefined;
  handle: Handle = -1;

  constructor(parent?: Served) {
    this.parent = parent;
    parent?.children.add(this);
  }

  /** Frees what the object has in the engine. */
  abstract release(): Promise<void>;
}

/** All objects by their handles. */
export class Registry {
  readonly #objects = new Map<Handle, Served>();
  #last: Handle;

  constructor(host: Served, handle: Handle) {
    this.#last = handle;
    this.#objects.set(handle, host);
  }

  add(object: Served): Handle {
    object.handle = ++this.#last;
    this.#objects.set(object.handle, object);
    return object.handle;
  }

  get(handle: Handle): Served | undefined {
    return this.#objects.get(handle);
  }

  /** Cancels what runs on an object and on its children, and frees them. */
  async close(object: Served): Promise<void> {
    if (!this.#objects.delete(object.handle)) return;
    for (const { calls } of [object, ...object.children]) for (const call of calls) call.cancel();
    object.parent?.children.delete(object);
    await object.queue.run(async () => {
      // A call that was cancelled may have made a child.
      await Promise.all([...object.children].map((child) => this.close(child)));
      await object.release();
    });
  }
}
