/** A file of a server without ranges, which comes once and stays in the browser's blob store. */
import { WeftError } from '../error.js';
import type { Download, Store } from './download.js';
import type { Part } from './part.js';

/** Bytes that become one blob. */
const PIECE_BYTES = 8 << 20;

/** Bytes as blobs, which the browser may keep on the disk. */
export class Spool implements Store {
  readonly #pieces: Blob[] = [];
  #tail: Uint8Array<ArrayBuffer>[] = [];
  #tailBytes = 0;

  append(bytes: Uint8Array): void {
    this.#tail.push(bytes.slice());
    this.#tailBytes += bytes.length;
    if (this.#tailBytes >= PIECE_BYTES) this.#seal();
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (this.#tailBytes > 0) this.#seal();
    const parts: Blob[] = [];
    let at = 0;
    for (const piece of this.#pieces) {
      const [from, to] = [Math.max(offset - at, 0), Math.min(offset + length - at, piece.size)];
      if (from < to) parts.push(piece.slice(from, to));
      at += piece.size;
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  async save(): Promise<void> {}
  async complete(): Promise<void> {}

  #seal(): void {
    this.#pieces.push(new Blob(this.#tail));
    this.#tail = [];
    this.#tailBytes = 0;
  }
}

export class SpoolPart implements Part {
  readonly name: string;
  readonly length: number;
  readonly missing = 0;
  readonly #download: Download;

  private constructor(name: string, length: number, download: Download) {
    this.name = name;
    this.length = length;
    this.#download = download;
  }

  /** A download whose length is known, or that has come to its end. */
  static async of(name: string, download: Download): Promise<SpoolPart> {
    if (download.length === undefined) await download.reach(Infinity);
    if (download.length === undefined) throw new WeftError('internal', `${name} has no length after its download`);
    return new SpoolPart(name, download.length, download);
  }

  head(length: number): Promise<Uint8Array> {
    return this.read(0, length);
  }

  read(offset: number, length: number): Promise<Uint8Array> {
    return this.#download.read(offset, length);
  }

  download(): Promise<void> {
    return this.#download.reach(this.length);
  }

  finish(): Promise<void> {
    return this.#download.finish();
  }

  suspend(): Promise<void> {
    return this.#download.pause();
  }

  async close(): Promise<void> {
    await this.suspend();
    this.#download.free();
  }

  discard(): Promise<void> {
    return this.suspend();
  }
}
