/** What the address asks of the mock. */
import type { Progress } from '../../../../js/src/types.js';

type Behaviour =
  /** Tokens take 60 ms each instead of 4. */
  | 'slow'
  /** A download takes a few seconds. */
  | 'slow-load'
  /** The device is lost in the middle of the first answer. */
  | 'lost'
  /** The worker ends in the middle of the first answer. */
  | 'ended'
  /** An answer fails with an error that the engine does not know. */
  | 'crash'
  /** Snapshots are larger than the page keeps. */
  | 'large-snapshot'
  /** A run ends early: its loss is flat, or the held-out loss gets no better. */
  | 'flat'
  | 'patience'
  /** The browser has a GPU. */
  | 'gpu';

const asked = new Set((new URLSearchParams(location.search).get('mock') ?? '').split(','));

export function has(behaviour: Behaviour): boolean {
  return asked.has(behaviour);
}

/** True once: for things that happen one time in a page. */
export function once(behaviour: Behaviour): boolean {
  return asked.delete(behaviour);
}

export class WeftError extends Error {
  override readonly name = 'WeftError';
  readonly code: string;
  readonly line: number | undefined;

  constructor(code: string, message: string, line?: number) {
    super(message);
    this.code = code;
    this.line = line;
  }
}

/** A turn of the event loop after some time, or an error if the work is cancelled meanwhile. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelled = () => reject(new WeftError('aborted', 'the call was cancelled'));
    if (signal?.aborted) return cancelled();
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    const stop = () => {
      clearTimeout(timer);
      cancelled();
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}

export async function progress(
  phase: Progress['phase'],
  total: number,
  parts: number,
  ms: number,
  options: { onProgress?: ((progress: Progress) => void) | undefined; signal?: AbortSignal | undefined },
): Promise<void> {
  for (let part = 1; part <= parts; part += 1) {
    await pause(ms, options.signal);
    options.onProgress?.({ phase, done: Math.round((total * part) / parts), total });
  }
}
