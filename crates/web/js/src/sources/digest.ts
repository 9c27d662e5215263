/** SHA-256 of bytes that come in order, and the comparison with what the page expects. */
import type { Engine, Hasher, Reader, Report } from '../engine.js';
import { WeftError } from '../error.js';

/** Hashes a file as its bytes come. Bytes that come again are not hashed again. */
export class Digest {
  readonly #hasher: Hasher;
  #position: number;

  constructor(engine: Engine, state?: { readonly hash: Uint8Array; readonly position: number }) {
    this.#hasher = new engine.Hasher(state?.hash);
    this.#position = state?.position ?? 0;
  }

  /** Number of bytes that were hashed: all from the start of the file on. */
  get position(): number {
    return this.#position;
  }

  update(bytes: Uint8Array, offset: number): void {
    if (offset > this.#position || offset + bytes.length <= this.#position) return;
    this.#hasher.update(bytes.subarray(this.#position - offset));
    this.#position = offset + bytes.length;
  }

  state(): Uint8Array {
    return this.#hasher.state();
  }

  /** 64 hexadecimal digits. */
  value(): string {
    return this.#hasher.digest();
  }

  free(): void {
    this.#hasher.free();
  }
}

/** Bytes that are hashed at once. */
const CHUNK_BYTES = 4 << 20;

/** Reads and hashes a whole file that is here. */
export async function digestOf(engine: Engine, file: Reader, report: Report | undefined, signal: AbortSignal): Promise<string> {
  const digest = new Digest(engine);
  try {
    while (digest.position < file.length) {
      signal.throwIfAborted();
      const at = digest.position;
      digest.update(await file.read(at, Math.min(CHUNK_BYTES, file.length - at)), at);
      report?.({ phase: 'verify', done: digest.position, total: file.length });
    }
    return digest.value();
  } finally {
    digest.free();
  }
}

/** An error if a file has another digest than the page expects. */
export function compareDigest(name: string, found: string, expected: string | undefined): void {
  if (expected === undefined || found === expected) return;
  const message = `${name} has the SHA-256 ${found}, and ${expected} was expected; the file is damaged or another one: load it from a source that you trust`;
  throw new WeftError('digest', message, { found, expected });
}
