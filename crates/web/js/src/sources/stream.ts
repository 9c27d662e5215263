/** The bytes of a file on a server, in order, across connections that break. */
import { WeftError } from '../error.js';
import { type Answer, type Body, type Identity, changed, cutOff, isSame, nameOf, request } from './http.js';
import { Attempts, Passing } from './retry.js';

/**
 * Lets one stream of a model have an open connection. A browser opens six to one host: a model of
 * more parts would wait for itself.
 */
export class Lane {
  #holder: ByteStream | undefined;

  enter(stream: ByteStream): void {
    if (this.#holder !== stream) this.#holder?.pause();
    this.#holder = stream;
  }
}

/** What is known of a file on a server. */
export interface RemoteFile {
  readonly url: string;
  identity: Identity;
  ranges: boolean;
}

const UNKNOWN: Identity = { length: undefined, etag: undefined, lastModified: undefined };

export class ByteStream {
  readonly file: RemoteFile;
  readonly #lane: Lane;
  /** Ends the stream, its connection and its waits. */
  readonly #stop = new AbortController();
  readonly #attempts = new Attempts();
  #connection: AbortController | undefined;
  #body: Body | undefined;
  #position: number;

  constructor(file: RemoteFile, lane: Lane, position: number) {
    this.file = file;
    this.#lane = lane;
    this.#position = position;
  }

  /**
   * Asks for a file from `position` on. `same` is what was known of it when the bytes before came;
   * the caller compares it with the file's identity now.
   */
  static async open(url: string, lane: Lane, position: number, same: Identity = UNKNOWN, stop: AbortSignal): Promise<ByteStream> {
    const stream = new ByteStream({ url, identity: same, ranges: true }, lane, position);
    const end = () => stream.stop();
    if (stop.aborted) end();
    stop.addEventListener('abort', end);
    try {
      await stream.#retried(async () => {
        const { identity, ranges, start } = await stream.#ask();
        Object.assign(stream.file, { identity, ranges });
        stream.#position = start;
      });
      return stream;
    } catch (error) {
      end();
      throw error;
    } finally {
      stop.removeEventListener('abort', end);
    }
  }

  /** Offset of the next byte. */
  get position(): number {
    return this.#position;
  }

  /**
   * The next bytes, or nothing at the end of the file. With `ahead` nothing comes either if another
   * stream has the connection.
   */
  next(ahead = false): Promise<Uint8Array | undefined> {
    return this.#retried(async () => {
      const { identity, url } = this.file;
      if (this.#position === identity.length || (ahead && this.#body === undefined)) return undefined;
      const bytes = await (this.#body ?? (await this.#connect())).next();
      if (bytes !== undefined) return this.#took(bytes);
      if (identity.length !== undefined) throw new Passing(cutOff(url, this.#position, identity.length));
      this.file.identity = { ...identity, length: this.#position };
      return undefined;
    });
  }

  /** Closes the connection. The next read opens another. */
  pause(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.#body = undefined;
  }

  /** Ends the stream: what waits for it gets an error. */
  stop(): void {
    this.#stop.abort();
    this.pause();
  }

  #took(bytes: Uint8Array): Uint8Array {
    const { identity, url } = this.file;
    if (this.#position + bytes.length > (identity.length ?? Infinity)) throw tooMuch(url, identity.length);
    this.#attempts.succeeded();
    this.#position += bytes.length;
    return bytes;
  }

  /** Asks for the rest of the file. */
  async #ask(): Promise<Answer> {
    this.#lane.enter(this);
    const connection = new AbortController();
    this.#connection = connection;
    const same = this.#position > 0 ? this.file.identity : undefined;
    const answer = await request(this.file.url, { start: this.#position }, same, connection.signal);
    this.#body = answer.body;
    return answer;
  }

  /** Opens a connection at the position, and checks that the file is still the same. */
  async #connect(): Promise<Body> {
    const { identity, start, body } = await this.#ask();
    if (!isSame(this.file.identity, identity)) throw changed(this.file.url);
    // A server without ranges sends the file from its start.
    await body.skip(this.#position - start);
    return body;
  }

  async #retried<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        this.#stop.signal.throwIfAborted();
        return await work();
      } catch (error) {
        const isPaused = !this.#stop.signal.aborted && (error as Error).name === 'AbortError';
        this.pause();
        if (!isPaused) await this.#attempts.failed(error, this.#stop.signal);
      }
    }
  }
}

function tooMuch(url: string, length: number | undefined): WeftError {
  const message = `${nameOf(url)}: the server announced ${length} bytes and sends more; load the file from another server`;
  return new WeftError('changed', message, { url, length });
}
