/** Bytes of a stream that were read ahead. */
import type { ByteStream } from './stream.js';

/** Bytes that are kept ahead of the reader. */
const AHEAD_BYTES = 16 << 20;

/** Reads ahead from a stream while the reader works, as far as memory allows. */
export class Window {
  readonly stream: ByteStream;
  readonly #took: (bytes: Uint8Array, offset: number) => void;
  readonly #chunks: Uint8Array[] = [];
  #start: number;
  #buffered = 0;
  #filling: Promise<void> | undefined;
  #isAhead = false;
  #error: unknown;

  /** `took` sees all bytes in the order in which they come. */
  constructor(stream: ByteStream, took: (bytes: Uint8Array, offset: number) => void) {
    this.stream = stream;
    this.#took = took;
    this.#start = stream.position;
  }

  /** Offset of the next byte that `take` gives. */
  get start(): number {
    return this.#start;
  }

  /** Fills `bytes` with the next bytes; without them, the next bytes are dropped. */
  async take(length: number, bytes?: Uint8Array): Promise<void> {
    for (let done = 0; done < length; ) {
      const chunk = this.#chunks[0];
      if (chunk === undefined) {
        if (this.#error !== undefined) throw this.#error;
        await this.#fill(false);
        continue;
      }
      const part = chunk.subarray(0, length - done);
      bytes?.set(part, done);
      done += part.length;
      this.#start += part.length;
      this.#buffered -= part.length;
      if (part.length === chunk.length) this.#chunks.shift();
      else this.#chunks[0] = chunk.subarray(part.length);
    }
    void this.#ahead();
  }

  /** The next bytes, which `take` gives again. */
  async peek(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    for (;;) {
      let done = 0;
      for (const chunk of this.#chunks) {
        const part = chunk.subarray(0, length - done);
        bytes.set(part, done);
        done += part.length;
      }
      if (done === length) return bytes;
      if (this.#error !== undefined) throw this.#error;
      await this.#fill(false);
    }
  }

  /** Keeps the connection busy until enough is buffered, or until another stream has it. */
  async #ahead(): Promise<void> {
    if (this.#isAhead) return;
    this.#isAhead = true;
    const { length } = this.stream.file.identity;
    for (let before = -1; before !== this.stream.position; ) {
      before = this.stream.position;
      if (this.#buffered < AHEAD_BYTES && before !== length && this.#error === undefined) await this.#fill(true);
    }
    this.#isAhead = false;
  }

  /** Reads one chunk. Callers that come meanwhile wait for the same one. */
  #fill(ahead: boolean): Promise<void> {
    this.#filling ??= this.#read(ahead).finally(() => (this.#filling = undefined));
    return this.#filling;
  }

  async #read(ahead: boolean): Promise<void> {
    const at = this.stream.position;
    try {
      const chunk = await this.stream.next(ahead);
      if (chunk === undefined && ahead) return;
      if (chunk === undefined) throw new RangeError('a read behind the end of the file');
      this.#took(chunk, at);
      this.#chunks.push(chunk);
      this.#buffered += chunk.length;
    } catch (error) {
      this.#error = error;
    }
  }
}
