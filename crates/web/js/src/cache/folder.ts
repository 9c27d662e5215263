/** The folder of the cache in the browser's private file system: a data file and a record each. */
import { asWeftError } from '../error.js';
import { sleep } from '../worker/abort.js';

/** A file that a worker reads and writes in place. TypeScript has the type for workers only. */
export interface SyncFile {
  read(buffer: Uint8Array, options: { at: number }): number;
  write(buffer: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

type FileHandle = FileSystemFileHandle & { createSyncAccessHandle(): Promise<SyncFile> };

const FOLDER = 'weft';

const ATTEMPTS = 20;
const ATTEMPT_MS = 100;

/** The folder, or the reason why this browser has none for this page. */
export async function openFolder(): Promise<{ folder: Folder } | { missing: string }> {
  if (typeof navigator.storage?.getDirectory !== 'function' || navigator.locks === undefined) {
    return { missing: self.isSecureContext ? 'this browser has no private file system' : 'a page that comes without https has no private file system' };
  }
  if (!('createSyncAccessHandle' in FileSystemFileHandle.prototype)) return { missing: 'the private file system of this browser has no handles' };
  try {
    const root = await navigator.storage.getDirectory();
    return { folder: new Folder(await root.getDirectoryHandle(FOLDER, { create: true })) };
  } catch (error) {
    return { missing: `the browser gives this page no private file system (${(error as Error).name})` };
  }
}

/** The value of some work on a file; nothing if the file is not there. */
async function present<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as Error).name === 'NotFoundError') return undefined;
    throw asWeftError(error);
  }
}

export class Folder {
  readonly #handle: FileSystemDirectoryHandle;

  constructor(handle: FileSystemDirectoryHandle) {
    this.#handle = handle;
  }

  async names(): Promise<string[]> {
    const names: string[] = [];
    for await (const name of this.#handle.keys()) names.push(name);
    return names;
  }

  /** A snapshot of a file, to be read. */
  async read(name: string): Promise<File | undefined> {
    const handle = await present(this.#handle.getFileHandle(name));
    return handle && present(handle.getFile());
  }

  /** A file that only this worker has open, made if it is not there. */
  async open(name: string): Promise<SyncFile> {
    const handle = (await this.#handle.getFileHandle(name, { create: true })) as FileHandle;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await handle.createSyncAccessHandle();
      } catch (error) {
        // The worker of a page that was closed may have it for a moment still.
        if ((error as Error).name !== 'NoModificationAllowedError' || attempt === ATTEMPTS) throw asWeftError(error);
        await sleep(ATTEMPT_MS);
      }
    }
  }

  /** Replaces the content of a file: completely or not at all, where the browser can do that. */
  async write(name: string, text: string): Promise<void> {
    const handle = await this.#handle.getFileHandle(name, { create: true });
    if ('createWritable' in handle) {
      const writable = await handle.createWritable();
      await writable.write(text);
      await writable.close();
      return;
    }
    const file = await this.open(name);
    try {
      file.truncate(0);
      file.write(new TextEncoder().encode(text), { at: 0 });
      file.flush();
    } finally {
      file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await present(this.#handle.removeEntry(name));
  }
}
