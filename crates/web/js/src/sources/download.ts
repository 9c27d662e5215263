/** A download that is stored and hashed while its bytes come, as far as they are wanted. */
import { WeftError } from '../error.js';
import { type Digest, compareDigest } from './digest.js';
import { cutOff, fetchRange } from './http.js';
import { checkMagic } from './magic.js';
import type { Activity } from './part.js';
import { ByteStream, type Lane, type RemoteFile } from './stream.js';

/** Where a download puts its bytes. */
export interface Store {
  /** Stores bytes behind all others. */
  append(bytes: Uint8Array): void;
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Keeps what is stored, so that another tab can go on there. */
  save(file: RemoteFile, digest: Digest): Promise<void>;
  /** The file is complete, and its digest is right. */
  complete(file: RemoteFile, digest: Digest): Promise<void>;
}

interface Waiter {
  readonly end: number;
  resolve(): void;
  reject(error: unknown): void;
}

export interface DownloadOptions {
  readonly name: string;
  readonly stream: ByteStream;
  readonly lane: Lane;
  readonly store: Store;
  /** Has hashed the bytes that are stored. */
  readonly digest: Digest;
  readonly expected: string | undefined;
  /** Largest number of bytes. */
  readonly limit: number;
  readonly activity: Activity;
}

/**
 * A read that begins further than this behind the bytes that are here gets a request of its own.
 */
const NEAR_BYTES = 16 << 20;

const SAVE_MS = 1000;

export class Download {
  readonly #options: DownloadOptions;
  readonly #file: RemoteFile;
  readonly #waiters = new Set<Waiter>();
  #stream: ByteStream;
  #stop = new AbortController();
  #wanted = 0;
  #pumping: Promise<void> | undefined;
  #error: unknown;

  constructor(options: DownloadOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#file = options.stream.file;
    options.activity.downloaded(this, this.position, this.length ?? 0);
  }

  /** Number of bytes that are stored. */
  get position(): number {
    return this.#options.digest.position;
  }

  /** Bytes of the file, once they are known. */
  get length(): number | undefined {
    return this.#file.identity.length;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const { url, identity, ranges } = this.#file;
    if (ranges && offset > this.position + NEAR_BYTES) return fetchRange(url, offset, length, identity, this.#stop.signal);
    await this.reach(offset + length);
    return this.#options.store.read(offset, length);
  }

  /** Waits until the bytes before `end` are stored; all bytes if there are fewer. */
  reach(end: number): Promise<void> {
    if (this.position >= Math.min(end, this.length ?? Infinity)) return Promise.resolve();
    if (this.#error !== undefined) return Promise.reject(this.#error);
    this.#wanted = Math.max(this.#wanted, end);
    return new Promise((resolve, reject) => {
      this.#waiters.add({ end, resolve, reject });
      this.#pumping ??= this.#pump();
    });
  }

  /** Waits for the end of the file, and compares the digest. */
  async finish(): Promise<void> {
    await this.reach(Infinity);
    const { name, digest, expected, store } = this.#options;
    compareDigest(name, digest.value(), expected);
    await store.complete(this.#file, digest);
  }

  /** Stops. What is stored stays; a later read goes on. */
  async pause(): Promise<void> {
    this.#stop.abort();
    this.#stream.stop();
    await this.#pumping;
    this.#stop = new AbortController();
    this.#stream = new ByteStream(this.#file, this.#options.lane, this.position);
    this.#error = undefined;
    this.#wanted = 0;
  }

  /** Frees the hash. The download is not used any more. */
  free(): void {
    this.#options.digest.free();
  }

  async #pump(): Promise<void> {
    const { store, digest } = this.#options;
    let saved = this.position;
    let saving = Promise.resolve();
    const save = () => {
      if (saved === this.position) return;
      saved = this.position;
      saving = saving.then(() => store.save(this.#file, digest));
      saving.catch((error: unknown) => this.#fail(error));
    };
    const timer = setInterval(save, SAVE_MS);
    try {
      while (this.position < this.#wanted && this.#error === undefined) {
        const bytes = await this.#stream.next();
        if (bytes === undefined) break;
        this.#took(bytes);
      }
      this.#settle();
    } catch (error) {
      this.#fail(error);
    } finally {
      clearInterval(timer);
      save();
      await saving.catch(() => {});
      this.#pumping = undefined;
      // A reader may have come while the state was saved.
      if (this.#waiters.size > 0) this.#pumping = this.#pump();
    }
  }

  #took(bytes: Uint8Array): void {
    const { store, digest, limit, name, activity } = this.#options;
    if (this.position + bytes.length > limit) {
      throw new WeftError('too-large', `${name} is larger than the limit of ${limit} bytes; raise limits.fileBytes, or take a smaller file`, { limit });
    }
    if (this.position === 0) checkMagic(name, bytes);
    store.append(bytes);
    digest.update(bytes, this.position);
    activity.downloaded(this, this.position, this.length ?? 0);
    for (const waiter of this.#waiters) {
      if (waiter.end <= this.position) this.#end(waiter, waiter.resolve);
    }
  }

  /** The file has ended: what waits for its end has it, and what waits for more gets an error. */
  #settle(): void {
    const { position, length } = this;
    if (position !== length) return;
    for (const waiter of this.#waiters) {
      if (waiter.end === Infinity || waiter.end <= length) this.#end(waiter, waiter.resolve);
      else this.#end(waiter, () => waiter.reject(cutOff(this.#file.url, length, waiter.end)));
    }
  }

  #fail(error: unknown): void {
    this.#error = error;
    for (const waiter of this.#waiters) this.#end(waiter, () => waiter.reject(error));
  }

  #end(waiter: Waiter, settle: () => void): void {
    this.#waiters.delete(waiter);
    settle();
  }
}
