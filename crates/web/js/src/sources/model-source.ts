/** The files of a model, as the engine reads them. */
import { CachedPart } from '../cache/cached-part.js';
import { type Folder, openFolder } from '../cache/folder.js';
import { checkSpace } from '../cache/space.js';
import type { Engine, Reader } from '../engine.js';
import { WeftError, asWeftError } from '../error.js';
import type { OpenRequest } from '../protocol.js';
import { abortable } from '../worker/abort.js';
import type { Call } from '../worker/call.js';
import { BlobPart, fileOf } from './blob-part.js';
import { Digest, compareDigest, digestOf } from './digest.js';
import { Download } from './download.js';
import { nameOf } from './http.js';
import { MAGIC_BYTES, checkMagic, isNoModel } from './magic.js';
import { Activity, type Part } from './part.js';
import { RangePart } from './range-part.js';
import { allParts, inOrder } from './split.js';
import { Spool, SpoolPart } from './spool-part.js';
import { ByteStream, Lane } from './stream.js';

/** Largest file without a known length that is kept in memory, if the page sets no limit. */
const UNKNOWN_BYTES = 4 * 2 ** 30;

export class ModelSource {
  readonly #activity = new Activity();
  readonly #lane = new Lane();
  readonly #engine: Engine;
  readonly #request: OpenRequest;
  readonly #parts: Part[] = [];
  #signal: AbortSignal | undefined;

  constructor(engine: Engine, request: OpenRequest) {
    this.#engine = engine;
    this.#request = request;
  }

  /** Opens all files, as far as their lengths and first bytes need it. */
  async open({ signal }: Call): Promise<void> {
    const { source } = this.#request;
    await (source.kind === 'urls' ? this.#openUrls(source.urls, signal) : this.#openFiles(source.files, signal));
    await this.#checkMagic();
  }

  /** Remarks on the way, each a sentence. */
  get notes(): readonly string[] {
    return this.#activity.notes;
  }

  /** What the engine reads from. */
  get readers(): Reader[] {
    return this.#parts.map((part) => ({
      name: part.name,
      length: part.length,
      read: (offset, length) =>
        abortable(this.#signal, part.read(offset, length)).catch((error: unknown) => {
          throw asWeftError(error);
        }),
    }));
  }

  /**
   * Does work that reads the files, for a call. Afterwards connections, handles and locks are free;
   * a later read takes them again. A file that is no model is not kept.
   */
  async during<T>(call: Call, work: () => Promise<T>): Promise<T> {
    this.#signal = call.signal;
    this.#activity.report = call.report;
    let isWanted = true;
    try {
      return await work();
    } catch (error) {
      isWanted = !isNoModel(error);
      throw error;
    } finally {
      await Promise.all(this.#parts.map((part) => (isWanted ? part.suspend() : part.discard())));
      this.#signal = undefined;
      this.#activity.report = undefined;
    }
  }

  /** Frees everything: no file is read any more. */
  async close(): Promise<void> {
    await Promise.all(this.#parts.splice(0).map((part) => part.close()));
  }

  /** Loads with all bytes: they are downloaded ahead of the engine's reads, and checked. */
  async whole<T>(load: () => Promise<T>): Promise<T> {
    const signal = this.#signal;
    await checkSpace(this.#parts.reduce((sum, { missing }) => sum + missing, 0));
    const ahead = this.#ahead();
    // The engine's reads get its error, too.
    ahead.catch(() => {});
    const loaded = await load();
    await abortable(signal, ahead);
    for (const part of this.#parts) await abortable(signal, part.finish());
    return loaded;
  }

  /** Downloads one file after the other. */
  async #ahead(): Promise<void> {
    for (const part of this.#parts) await part.download();
  }

  async #checkMagic(): Promise<void> {
    for (const part of this.#parts) {
      const start = await abortable(this.#signal, part.head(Math.min(MAGIC_BYTES, part.length)));
      checkMagic(part.name, start);
      if (start.length < MAGIC_BYTES) throw new WeftError('truncated', `${part.name} has only ${part.length} bytes; load the whole file`);
    }
  }

  async #openFiles(sources: readonly (Blob | FileSystemFileHandle)[], signal: AbortSignal): Promise<void> {
    const files = inOrder(await Promise.all(sources.map(fileOf)));
    const digests = this.#digests(files.length);
    for (const [index, { name, blob }] of files.entries()) {
      const part = new BlobPart(name, blob);
      const expected = digests[index];
      if (expected !== undefined) compareDigest(name, await digestOf(this.#engine, part, this.#activity.report, signal), expected);
      this.#parts.push(part);
    }
  }

  async #openUrls(given: readonly string[], signal: AbortSignal): Promise<void> {
    const urls = given.length === 1 ? allParts(given[0]!) : given;
    const digests = this.#digests(urls.length);
    const folder = await this.#folder();
    for (const [index, url] of urls.entries()) {
      const opening = this.#openUrl(url, digests[index], folder, signal);
      // What is opened after an abort is closed at once.
      this.#parts.push(await abortable(signal, opening).catch(async (error: unknown) => {
        void opening.then((part) => part.suspend(), () => {});
        throw error;
      }));
    }
  }

  async #openUrl(url: string, expected: string | undefined, folder: Folder | undefined, signal: AbortSignal): Promise<Part> {
    const { fileBytes } = this.#request.limits;
    if (!/^https?:/.test(url)) return new BlobPart(nameOf(url), await (await fetch(url, { signal })).blob());
    const [name, lane, activity, engine] = [nameOf(url), this.#lane, this.#activity, this.#engine];
    if (folder !== undefined) {
      return CachedPart.open(url, name, expected, { folder, engine, lane, activity, limit: fileBytes ?? Infinity }, signal);
    }
    const stream = await ByteStream.open(url, lane, 0, undefined, signal);
    const { identity, ranges } = stream.file;
    if (ranges && identity.length !== undefined) {
      const check = expected === undefined ? undefined : { digest: new Digest(engine), expected };
      return new RangePart(name, stream, identity.length, lane, activity, check);
    }
    const digest = new Digest(engine);
    const limit = fileBytes ?? (identity.length === undefined ? UNKNOWN_BYTES : Infinity);
    const download = new Download({ name, stream, lane, store: new Spool(), digest, expected, limit, activity });
    const stop = () => void download.pause();
    signal.addEventListener('abort', stop);
    return SpoolPart.of(name, download).finally(() => signal.removeEventListener('abort', stop));
  }

  /** The folder of the cache, if the page wants it and the browser has it. */
  async #folder(): Promise<Folder | undefined> {
    if (this.#request.cache === 'none') return undefined;
    const opened = await openFolder();
    if ('folder' in opened) return opened.folder;
    this.#activity.notes.push(`The file was not kept for the next time: ${opened.missing}.`);
    return undefined;
  }

  /** The expected digests: none, or one for each file. */
  #digests(files: number): readonly (string | undefined)[] {
    const { sha256 } = this.#request;
    if (sha256.length === 0 || sha256.length === files) return sha256;
    throw new WeftError('bad-options', `sha256: the model has ${files} files, and ${sha256.length} digests are given; give one for each file`);
  }
}
