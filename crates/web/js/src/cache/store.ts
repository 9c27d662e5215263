/** A data file of the cache that a download writes, and its record. */
import { WeftError } from '../error.js';
import type { Digest } from '../sources/digest.js';
import type { Store } from '../sources/download.js';
import type { RemoteFile } from '../sources/stream.js';
import type { Folder, SyncFile } from './folder.js';
import { dataName, hashText, writeRecord } from './record.js';

export class CacheStore implements Store {
  readonly #folder: Folder;
  readonly #key: string;
  readonly #file: SyncFile;
  #size: number;

  private constructor(folder: Folder, key: string, file: SyncFile, size: number) {
    this.#folder = folder;
    this.#key = key;
    this.#file = file;
    this.#size = size;
  }

  /** Opens the data file with its first `size` bytes. Returns nothing if it has fewer. */
  static async open(folder: Folder, key: string, size: number): Promise<CacheStore | undefined> {
    const file = await folder.open(dataName(key));
    if (file.getSize() < size) {
      file.close();
      return undefined;
    }
    file.truncate(size);
    return new CacheStore(folder, key, file, size);
  }

  append(bytes: Uint8Array): void {
    let written = 0;
    try {
      written = this.#file.write(bytes, { at: this.#size });
    } catch (error) {
      if ((error as Error).name !== 'QuotaExceededError') throw error;
    }
    if (written < bytes.length) throw noSpace();
    this.#size += written;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    const read = this.#file.read(bytes, { at: offset });
    if (read < length) throw new WeftError('read', 'the browser does not give the bytes back that it stored; delete the file with `cache.delete`, and load it again');
    return bytes;
  }

  /** The data is on the disk before its record tells of it. */
  save(file: RemoteFile, digest: Digest): Promise<void> {
    return this.#write(file, digest, false);
  }

  complete(file: RemoteFile, digest: Digest): Promise<void> {
    return this.#write(file, digest, true);
  }

  close(): void {
    this.#file.close();
  }

  #write({ url, identity }: RemoteFile, digest: Digest, whole: boolean): Promise<void> {
    this.#file.flush();
    return writeRecord(this.#folder, this.#key, {
      version: 1,
      url,
      ...identity,
      position: digest.position,
      hash: hashText(digest.state()),
      whole,
      ...(whole && { sha256: digest.value() }),
      used: Date.now(),
    });
  }
}

function noSpace(): WeftError {
  return new WeftError('quota', 'the browser gives this page no more space; delete files of the cache, or free space on the disk, and load again (it goes on where it was)');
}
