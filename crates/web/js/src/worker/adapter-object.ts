/** An adapter, whose files are kept to load it again beside a model on another device. */
import type { Adapter } from '../engine.js';
import type { AdapterMethods } from '../protocol.js';
import type { NamedBytes } from '../types.js';
import type { Loaded, ModelObject } from './model-object.js';
import { Served, type Serves } from './served.js';

export class AdapterObject extends Served implements Serves<AdapterMethods> {
  /** The browser may keep blobs on the disk. */
  readonly #files: readonly { readonly name: string; readonly blob: Blob }[];
  #adapter: { readonly adapter: Adapter; readonly generation: number } | undefined;

  constructor(model: ModelObject, files: readonly NamedBytes[]) {
    super(model);
    this.#files = files.map(({ name, bytes }) => ({ name, blob: new Blob([bytes as BlobPart]) }));
  }

  /** The adapter beside this model. */
  async on({ model, generation }: Loaded): Promise<Adapter> {
    if (this.#adapter?.generation === generation) return this.#adapter.adapter;
    const files = this.#files.map(async ({ name, blob }) => ({ name, bytes: new Uint8Array(await blob.arrayBuffer()) }));
    const adapter = await model.adapter(await Promise.all(files));
    this.#adapter?.adapter.free();
    this.#adapter = { adapter, generation };
    return adapter;
  }

  async release(): Promise<void> {
    this.#adapter?.adapter.free();
    this.#adapter = undefined;
  }
}
