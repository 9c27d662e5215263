/** Tables in IndexedDB. Without it, as in some private windows, a table lives in memory. */

const NAME = 'weft';
const VERSION = 1;
const TABLES = ['conversations', 'values', 'blobs'] as const;
type Name = (typeof TABLES)[number];

function promised<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('the browser could not read its database'));
  });
}

function open(): Promise<IDBDatabase | undefined> {
  return new Promise((resolve) => {
    let request: IDBOpenDBRequest;
    try {
      request = indexedDB.open(NAME, VERSION);
    } catch {
      return resolve(undefined);
    }
    request.onupgradeneeded = () => {
      for (const table of TABLES) {
        if (!request.result.objectStoreNames.contains(table)) request.result.createObjectStore(table);
      }
    };
    request.onsuccess = () => {
      // A later version of the pages in another tab must not wait for this tab.
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => resolve(undefined);
  });
}

let database: Promise<IDBDatabase | undefined> | undefined;

/** Whether what is stored outlives the tab. */
export async function isKept(): Promise<boolean> {
  return (await (database ??= open())) !== undefined;
}

export class Table<T> {
  readonly #name: Name;
  readonly #memory = new Map<string, T>();

  constructor(name: Name) {
    this.#name = name;
  }

  async #store(mode: IDBTransactionMode): Promise<IDBObjectStore | undefined> {
    const opened = await (database ??= open());
    return opened?.transaction(this.#name, mode, { durability: 'relaxed' }).objectStore(this.#name);
  }

  async get(key: string): Promise<T | undefined> {
    const store = await this.#store('readonly');
    return store === undefined ? this.#memory.get(key) : promised(store.get(key) as IDBRequest<T | undefined>);
  }

  async put(key: string, value: T): Promise<void> {
    const store = await this.#store('readwrite');
    if (store === undefined) this.#memory.set(key, value);
    else await promised(store.put(value, key));
  }

  async delete(key: string): Promise<void> {
    const store = await this.#store('readwrite');
    if (store === undefined) this.#memory.delete(key);
    else await promised(store.delete(key));
  }

  async all(): Promise<T[]> {
    const store = await this.#store('readonly');
    return store === undefined ? [...this.#memory.values()] : promised(store.getAll() as IDBRequest<T[]>);
  }
}
