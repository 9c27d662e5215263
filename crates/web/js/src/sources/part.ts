/** One file of a model, and the work during which its bytes are read. */
import type { Reader } from '../engine.js';
import type { Progress } from '../types.js';

/** A file whose length is known. */
export interface Part extends Reader {
  /** Bytes that a download will add to the cache. */
  readonly missing: number;
  /** The first bytes, for a look: the engine's first read does not come back to them. */
  head(length: number): Promise<Uint8Array>;
  /** Downloads the file to its end if it is kept, ahead of the reads. */
  download(): Promise<void>;
  /** Waits until the file is complete, checks its digest, and marks it whole. */
  finish(): Promise<void>;
  /** Gives connections, handles and locks back. A later read takes them again. */
  suspend(): Promise<void>;
  /** As `suspend`, and frees what the engine has: nothing is read any more. */
  close(): Promise<void>;
  /** As `suspend`, and deletes what was kept: the file is not wanted. */
  discard(): Promise<void>;
}

/** What the parts of one model share: the work that runs, and remarks on the way. */
export class Activity {
  /** Told how far the work is, while a call runs. */
  report: ((progress: Progress) => void) | undefined;
  readonly notes: string[] = [];
  readonly #downloads = new Map<object, { readonly done: number; readonly total: number }>();

  /** Tells how far the download of one file is; `total` is 0 while it is not known. */
  downloaded(file: object, done: number, total: number): void {
    this.#downloads.set(file, { done, total });
    const all = [...this.#downloads.values()];
    const isKnown = all.every((one) => one.total > 0);
    const sum = (of: 'done' | 'total') => all.reduce((total, one) => total + one[of], 0);
    this.report?.({ phase: 'download', done: sum('done'), total: isKnown ? sum('total') : 0 });
  }
}
