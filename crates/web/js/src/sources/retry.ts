/** When a request is tried again, and how long it waits before. */
import { type WeftError, asWeftError } from '../error.js';
import { sleep } from '../worker/abort.js';

/** Attempts without a byte of progress before a download fails. */
const ATTEMPTS = 6;

const FIRST_MS = 250;
const LONGEST_MS = 20_000;

/** Milliseconds before attempt `failures` + 1: twice as long each time, less a random part. */
function backoff(failures: number): number {
  const full = Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS);
  return full * (0.5 + Math.random() / 2);
}

/** Whether a server that gives this status may give the file later. */
export function isPassing(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** Milliseconds that the header `Retry-After` asks for: seconds, or a date. */
export function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** A failure after which the request may be repeated. `afterMs` is what the server asks for. */
export class Passing extends Error {
  readonly error: WeftError;
  readonly afterMs: number | undefined;

  constructor(error: WeftError, afterMs?: number) {
    super(error.message);
    this.error = error;
    this.afterMs = afterMs;
  }
}

/** The attempts to get the next bytes. */
export class Attempts {
  #failures = 0;

  /** Bytes came: the count begins again. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** Waits before the next attempt, or throws the error if there is none. */
  async failed(error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!(error instanceof Passing)) throw asWeftError(error);
    this.#failures += 1;
    if (this.#failures >= ATTEMPTS) throw error.error;
    await sleep(error.afterMs ?? backoff(this.#failures), signal);
  }
}
