/** A file of a server that is kept in the browser's private file system. */
import type { Engine } from '../engine.js';
import { WeftError } from '../error.js';
import { BlobPart } from '../sources/blob-part.js';
import { Digest } from '../sources/digest.js';
import { Download } from '../sources/download.js';
import { type Identity, changed, isSame } from '../sources/http.js';
import type { Activity, Part } from '../sources/part.js';
import { isNoModel } from '../sources/magic.js';
import { ByteStream, type Lane } from '../sources/stream.js';
import type { Folder } from './folder.js';
import { type Release, lock } from './lock.js';
import { type FileRecord, bytesOfHash, identityOf, isResumable, keyOf, readRecord, removeFile, wholeFile, writeRecord } from './record.js';
import { CacheStore } from './store.js';

export interface CacheContext {
  readonly folder: Folder;
  readonly engine: Engine;
  readonly lane: Lane;
  readonly activity: Activity;
  /** Largest number of bytes of the file. */
  readonly limit: number;
}

/** The file while it is open: complete and shared, or written by this worker alone. */
type Open =
  | { readonly kind: 'whole'; readonly blob: BlobPart; readonly release: Release }
  | { readonly kind: 'partial'; readonly download: Download; readonly store: CacheStore; readonly release: Release };

/** Milliseconds between two looks at the download of another tab. */
const LOOK_MS = 500;

export class CachedPart implements Part {
  readonly name: string;
  readonly #url: string;
  readonly #key: string;
  readonly #expected: string | undefined;
  readonly #context: CacheContext;
  #length = 0;
  /** What the file was when it was opened first. */
  #identity: Identity | undefined;
  #stop = new AbortController();
  #opening: Promise<Open> | undefined;
  #open: Open | undefined;

  private constructor(url: string, name: string, key: string, expected: string | undefined, context: CacheContext) {
    this.#url = url;
    this.name = name;
    this.#key = key;
    this.#expected = expected;
    this.#context = context;
  }

  /** Opens the file of the cache, or begins its download as far as its length needs it. */
  static async open(url: string, name: string, expected: string | undefined, context: CacheContext, stop: AbortSignal): Promise<CachedPart> {
    const part = new CachedPart(url, name, await keyOf(url), expected, context);
    const end = () => part.#stop.abort();
    if (stop.aborted) end();
    stop.addEventListener('abort', end);
    try {
      const open = await part.#opened();
      if (open.kind === 'partial' && open.download.length === undefined) await open.download.reach(Infinity);
      part.#length = open.kind === 'whole' ? open.blob.length : open.download.length!;
      return part;
    } catch (error) {
      await (isNoModel(error) ? part.discard() : part.suspend());
      throw error;
    } finally {
      stop.removeEventListener('abort', end);
    }
  }

  get length(): number {
    return this.#length;
  }

  get missing(): number {
    return this.#open?.kind === 'partial' ? this.#length - this.#open.download.position : 0;
  }

  head(length: number): Promise<Uint8Array> {
    return this.read(0, length);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const open = await this.#opened();
    return open.kind === 'whole' ? open.blob.read(offset, length) : open.download.read(offset, length);
  }

  async download(): Promise<void> {
    const open = await this.#opened();
    if (open.kind === 'partial') await open.download.reach(this.#length);
  }

  async finish(): Promise<void> {
    const open = await this.#opened();
    if (open.kind === 'whole') return;
    try {
      await open.download.finish();
    } catch (error) {
      if (error instanceof WeftError && error.code === 'digest') await this.discard();
      throw error;
    }
    await this.suspend();
  }

  async suspend(): Promise<void> {
    this.#stop.abort();
    const open = await this.#opening?.catch(() => undefined);
    this.#stop = new AbortController();
    this.#opening = undefined;
    this.#open = undefined;
    if (open !== undefined) await close(open);
  }

  close(): Promise<void> {
    return this.suspend();
  }

  async discard(): Promise<void> {
    const { folder } = this.#context;
    const wasPartial = this.#open?.kind === 'partial';
    await this.suspend();
    const release = wasPartial ? await lock(this.#key, { ifAvailable: true }) : undefined;
    if (release === undefined) return;
    await removeFile(folder, this.#key).finally(release);
  }

  /** The open file. Reads that come together open it once. */
  #opened(): Promise<Open> {
    this.#opening ??= this.#take().then(
      (open) => (this.#open = open),
      (error: unknown) => {
        this.#opening = undefined;
        throw error;
      },
    );
    return this.#opening;
  }

  async #take(): Promise<Open> {
    for (;;) {
      const shared = (await this.#usable()) && (await lock(this.#key, { mode: 'shared', signal: this.#stop.signal }));
      // The file may have been deleted before the lock was there.
      const whole = shared && (await this.#usable());
      if (shared && whole) return this.#asWhole(whole, shared);
      shared?.();
      const release = await this.#exclusive();
      try {
        // Another tab may have completed the file meanwhile.
        if (!(await this.#usable())) return await this.#asPartial(release);
      } catch (error) {
        release();
        throw error;
      }
      release();
    }
  }

  /** The whole file, if it is there and has the digest that the page expects. */
  async #usable(): ReturnType<typeof wholeFile> {
    const whole = await wholeFile(this.#context.folder, this.#key);
    return whole && (this.#expected ?? whole.record.sha256) === whole.record.sha256 ? whole : undefined;
  }

  async #asWhole({ record, data }: { record: FileRecord; data: File }, release: Release): Promise<Open> {
    try {
      this.#remember(identityOf(record));
      // A hint for the page which file to delete first: it may fail.
      await writeRecord(this.#context.folder, this.#key, { ...record, used: Date.now() }).catch(() => {});
      return { kind: 'whole', blob: new BlobPart(this.name, data), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #exclusive(): Promise<Release> {
    const { folder, activity } = this.#context;
    const free = await lock(this.#key, { ifAvailable: true });
    if (free !== undefined) return free;
    const look = async () => {
      const record = await readRecord(folder, this.#key);
      activity.report?.({ phase: 'wait', done: record?.position ?? 0, total: record?.length ?? 0 });
    };
    await look();
    const timer = setInterval(() => void look(), LOOK_MS);
    try {
      return (await lock(this.#key, { signal: this.#stop.signal }))!;
    } finally {
      clearInterval(timer);
    }
  }

  /** Goes on with a download that was interrupted, or begins one. */
  async #asPartial(release: Release): Promise<Open> {
    const { folder, engine, lane, activity, limit } = this.#context;
    const record = await readRecord(folder, this.#key);
    if (record?.whole) this.#note(`${this.name} was in the cache, but damaged or with another SHA-256: it is downloaded again.`);
    const before = record?.whole ? undefined : record;
    let stream = await this.#stream(before);
    let store = before && stream.position === before.position ? await CacheStore.open(folder, this.#key, before.position) : undefined;
    const kept = store && before;
    if (store === undefined) {
      if (stream.position > 0) {
        stream.stop();
        stream = await this.#stream(undefined);
      }
      store = (await CacheStore.open(folder, this.#key, 0))!;
    }
    const digest = new Digest(engine, kept && { hash: bytesOfHash(kept), position: kept.position });
    try {
      this.#remember(stream.file.identity);
      await store.save(stream.file, digest);
    } catch (error) {
      stream.stop();
      store.close();
      digest.free();
      throw error;
    }
    const download = new Download({ name: this.name, stream, lane, store, digest, expected: this.#expected, limit, activity });
    return { kind: 'partial', download, store, release };
  }

  /** The stream of the rest of a download, or of the whole file if the rest does not fit. */
  async #stream(before: FileRecord | undefined): Promise<ByteStream> {
    const { lane } = this.#context;
    const signal = this.#stop.signal;
    if (before === undefined || before.length === undefined || before.position === 0) return ByteStream.open(this.#url, lane, 0, undefined, signal);
    const same = identityOf(before);
    // All bytes came, and only the mark is missing.
    if (before.position === before.length) return new ByteStream({ url: this.#url, identity: same, ranges: true }, lane, before.position);
    const stream = await ByteStream.open(this.#url, lane, before.position, same, signal).catch((error: unknown) => {
      if (error instanceof WeftError && error.code === 'changed') return undefined;
      throw error;
    });
    if (stream !== undefined && isResumable(before, stream.file.identity, this.#expected !== undefined)) return stream;
    const isUnknown = before.etag === undefined && before.lastModified === undefined && stream?.file.identity.length === before.length;
    const why = isUnknown ? 'the server does not tell whether it is still the same file' : 'the file was changed on the server';
    this.#note(`The download of ${this.name} was interrupted, and began again: ${why}.`);
    if (stream?.position === 0) return stream;
    stream?.stop();
    return ByteStream.open(this.#url, lane, 0, undefined, signal);
  }

  /** A file that is opened again must be the file that it was. */
  #remember(identity: Identity): void {
    if (this.#identity !== undefined && !isSame(this.#identity, identity)) throw changed(this.#url);
    this.#identity ??= identity;
  }

  #note(text: string): void {
    const { notes } = this.#context.activity;
    if (!notes.includes(text)) notes.push(text);
  }
}

async function close(open: Open): Promise<void> {
  try {
    if (open.kind === 'partial') {
      await open.download.pause();
      open.store.close();
      open.download.free();
    }
  } finally {
    open.release();
  }
}
