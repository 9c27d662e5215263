/** Waiting that ends when a signal is aborted. */
import { aborted } from '../error.js';

/** The promise's value, or an error as soon as the signal is aborted. The work itself goes on. */
export function abortable<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(aborted());
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    const end = () => signal.removeEventListener('abort', stop);
    promise.finally(end).then(resolve, reject);
  });
}

/** Waits. An abort ends the wait with an error. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const elapsed = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  try {
    await abortable(signal, elapsed);
  } finally {
    clearTimeout(timer);
  }
}
