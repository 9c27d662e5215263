/** A file of the disk, or bytes of the page. */
import { WeftError } from '../error.js';
import type { Part } from './part.js';

export class BlobPart implements Part {
  readonly name: string;
  readonly length: number;
  readonly missing = 0;
  readonly #blob: Blob;

  constructor(name: string, blob: Blob) {
    this.name = name;
    this.length = blob.size;
    this.#blob = blob;
  }

  head(length: number): Promise<Uint8Array> {
    return this.read(0, length);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const bytes = await this.#blob.slice(offset, offset + length).arrayBuffer();
    if (bytes.byteLength === length) return new Uint8Array(bytes);
    throw new WeftError('truncated', `${this.name} ended while it was read; choose the file again`);
  }

  // A local file needs no download, and holds nothing.
  async download(): Promise<void> {}
  async finish(): Promise<void> {}
  async suspend(): Promise<void> {}
  async close(): Promise<void> {}
  async discard(): Promise<void> {}
}

/** The file that a handle names, or a file as it is. */
export async function fileOf(source: Blob | FileSystemFileHandle): Promise<{ name: string; blob: Blob }> {
  const blob = source instanceof Blob ? source : await source.getFile();
  return { name: blob instanceof File ? blob.name : 'model', blob };
}
