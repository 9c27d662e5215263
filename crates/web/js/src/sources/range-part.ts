/** A file on a server with ranges, which is read without being kept. */
import { Queue } from '../worker/queue.js';
import { type Digest, compareDigest } from './digest.js';
import { cutOff, fetchRange } from './http.js';
import type { Activity, Part } from './part.js';
import { ByteStream, type Lane, type RemoteFile } from './stream.js';
import { Window } from './window.js';

/** A gap up to here is read and dropped: that is faster than another request. */
const GAP_BYTES = 4 << 20;

export class RangePart implements Part {
  readonly name: string;
  readonly length: number;
  readonly missing = 0;
  readonly #file: RemoteFile;
  readonly #lane: Lane;
  readonly #activity: Activity;
  /** What the page wants to know of the bytes, until it is known. */
  #check: { readonly digest: Digest; readonly expected: string } | undefined;
  readonly #reads = new Queue();
  #stop = new AbortController();
  #window: Window | undefined;
  /** End of the last read. A read that begins there opens a stream; another fetches its range. */
  #end = 0;
  /** End of the furthest read. */
  #done = 0;

  /** `stream` is the first answer, from the start of the file on. */
  constructor(name: string, stream: ByteStream, length: number, lane: Lane, activity: Activity, check?: { digest: Digest; expected: string }) {
    this.name = name;
    this.length = length;
    this.#file = stream.file;
    this.#lane = lane;
    this.#activity = activity;
    this.#check = check;
    this.#window = this.#windowOf(stream);
  }

  head(length: number): Promise<Uint8Array> {
    const window = this.#window;
    return window?.start === 0 ? window.peek(length) : this.read(0, length);
  }

  read(offset: number, length: number): Promise<Uint8Array> {
    return this.#reads.run(() => this.#read(offset, length));
  }

  async #read(offset: number, length: number): Promise<Uint8Array> {
    const gap = offset - (this.#window?.start ?? -Infinity);
    const isNear = gap >= 0 && gap <= GAP_BYTES;
    if (!isNear && offset !== this.#end) {
      this.#end = offset + length;
      return fetchRange(this.#file.url, offset, length, this.#file.identity, this.#stop.signal);
    }
    if (!isNear) {
      this.#window?.stream.stop();
      this.#window = this.#windowOf(new ByteStream(this.#file, this.#lane, offset));
    }
    const window = this.#window!;
    await window.take(offset - window.start);
    const bytes = new Uint8Array(length);
    await window.take(length, bytes);
    this.#end = offset + length;
    this.#done = Math.max(this.#done, this.#end);
    this.#activity.downloaded(this, this.#done, this.length);
    return bytes;
  }

  #windowOf(stream: ByteStream): Window {
    return new Window(stream, (bytes, offset) => this.#check?.digest.update(bytes, offset));
  }

  /** What the stream reads ahead is the download. */
  async download(): Promise<void> {}

  /** Reads what was not read, if the page wants the digest. */
  async finish(): Promise<void> {
    if (this.#check !== undefined) {
      const { digest, expected } = this.#check;
      await this.#hashRest(digest);
      const found = digest.value();
      this.#check = undefined;
      digest.free();
      compareDigest(this.name, found, expected);
    }
    this.#activity.downloaded(this, this.length, this.length);
  }

  async #hashRest(digest: Digest): Promise<void> {
    const stream = new ByteStream(this.#file, this.#lane, digest.position);
    const stop = () => stream.stop();
    this.#stop.signal.addEventListener('abort', stop, { once: true });
    while (digest.position < this.length) {
      const bytes = await stream.next();
      if (bytes === undefined) throw cutOff(this.#file.url, digest.position, this.length);
      digest.update(bytes, stream.position - bytes.length);
      this.#activity.report?.({ phase: 'verify', done: digest.position, total: this.length });
    }
  }

  async suspend(): Promise<void> {
    this.#stop.abort();
    this.#stop = new AbortController();
    this.#window?.stream.stop();
    this.#window = undefined;
  }

  async close(): Promise<void> {
    await this.suspend();
    this.#check?.digest.free();
    this.#check = undefined;
  }

  discard(): Promise<void> {
    return this.suspend();
  }
}
