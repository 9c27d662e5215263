/** The worker itself, and files that are only looked at. */
import { cachedFiles, storage } from '../cache/space.js';
import { deleteCached, verifyCached } from '../cache/manage.js';
import type { Engine, Model, Opened } from '../engine.js';
import { WeftError } from '../error.js';
import type { HostMethods, InspectionMethods, Made, OpenRequest } from '../protocol.js';
import { ModelSource } from '../sources/model-source.js';
import type * as t from '../types.js';
import type { Call } from './call.js';
import { engine } from './engine.js';
import { ModelObject } from './model-object.js';
import { loadWeights, openModel } from './opening.js';
import { Served, type Serves } from './served.js';
import type { World } from './world.js';

/** Files that are open, and what the engine read of them. */
interface Looked {
  readonly engine: Engine;
  readonly request: OpenRequest;
  readonly source: ModelSource;
  readonly opened: Opened;
}

/** Opens files and reads their headers, and then does work with them. */
async function look<T>(call: Call, request: OpenRequest, work: (looked: Looked) => T | Promise<T>): Promise<T> {
  const module = await engine(call.report);
  const source = new ModelSource(module, request);
  try {
    return await source.during(call, async () => {
      await source.open(call);
      return work({ engine: module, request, source, opened: await openModel(call, module, request, source) });
    });
  } catch (error) {
    await source.close();
    throw error;
  }
}

function infoOf({ opened, source }: Looked): t.ModelInfo {
  const info = opened.info();
  return { ...info, notes: [...info.notes, ...source.notes] };
}

function made(world: World, { engine: module, request, source }: Looked, model: Model): Made<t.ModelInfo> {
  const object = new ModelObject(world, module, request, source, model);
  return { handle: world.registry.add(object), facts: object.info };
}

/** Loads the weights, within `during` of the source. */
async function loadLooked(world: World, call: Call, looked: Looked): Promise<Made<t.ModelInfo>> {
  const { engine: module, source, opened } = looked;
  return made(world, looked, await loadWeights(call, module, source, opened));
}

export class HostObject extends Served implements Serves<HostMethods> {
  world!: World;

  async inspect(call: Call, request: OpenRequest): Promise<Made<t.ModelInfo>> {
    const looked = await look(call, request, (looked) => looked);
    return { handle: this.world.registry.add(new InspectionObject(this.world, looked)), facts: infoOf(looked) };
  }

  async load(call: Call, request: OpenRequest): Promise<Made<t.ModelInfo>> {
    return look(call, request, (looked) => loadLooked(this.world, call, looked));
  }

  async devices(): Promise<t.DeviceInfo[]> {
    return (await engine()).devices();
  }

  async memory(): Promise<t.MemoryUse> {
    return (await engine()).memoryUse();
  }

  cachedFiles(): Promise<t.CachedFile[]> {
    return cachedFiles();
  }

  async verifyCached(call: Call, url: string): Promise<t.Verified> {
    return verifyCached(await engine(), url, call);
  }

  deleteCached(_call: Call, url: string): Promise<void> {
    return deleteCached(url);
  }

  storage(): Promise<Omit<t.Storage, 'persistent'>> {
    return storage();
  }

  async release(): Promise<void> {}
}

export class InspectionObject extends Served implements Serves<InspectionMethods> {
  readonly #world: World;
  #looked: Looked | undefined;

  constructor(world: World, looked: Looked) {
    super();
    this.#world = world;
    this.#looked = looked;
  }

  needs(_call: Call, options: t.SessionOptions): t.Needs {
    return this.#open().opened.needs(options);
  }

  async load(call: Call): Promise<Made<t.ModelInfo>> {
    const looked = this.#open();
    // The engine uses the header up, also when the load fails.
    this.#looked = undefined;
    try {
      return await looked.source.during(call, () => loadLooked(this.#world, call, looked));
    } catch (error) {
      await looked.source.close();
      throw error;
    }
  }

  async release(): Promise<void> {
    const looked = this.#looked;
    this.#looked = undefined;
    looked?.opened.free();
    await looked?.source.close();
  }

  #open(): Looked {
    if (this.#looked !== undefined) return this.#looked;
    throw new WeftError('closed', 'the inspection was used by a load; inspect the file again');
  }
}
