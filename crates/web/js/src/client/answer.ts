/** The tokens of an answer, one after the other. */
import type { Finish, Token } from '../types.js';
import type { Hooks } from './connection.js';

/** Tokens that came and were not taken yet. */
class Arrived {
  readonly #tokens: Token[] = [];
  #wake: (() => void) | undefined;

  push(token: Token): void {
    this.#tokens.push(token);
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  take(): Token | undefined {
    return this.#tokens.shift();
  }

  wait(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

/** A signal of its own that also follows another. */
function following(signal: AbortSignal | undefined): { stop: AbortController; end: () => void } {
  const stop = new AbortController();
  const follow = () => stop.abort();
  if (signal?.aborted) follow();
  signal?.addEventListener('abort', follow);
  return { stop, end: () => signal?.removeEventListener('abort', follow) };
}

/**
 * Runs an answer and gives its tokens. The answer begins with the first `next`. It is cancelled by
 * the signal, and by the end of the loop that takes the tokens; `told` then still gets its finish.
 */
export async function* tokensOf(
  run: (hooks: Hooks) => Promise<Finish>,
  { signal, onProgress }: Pick<Hooks, 'signal' | 'onProgress'>,
  told: (finish: Finish) => void,
): AsyncGenerator<Token, void, undefined> {
  const arrived = new Arrived();
  const { stop, end } = following(signal);
  let ended = false;
  const hooks: Hooks = { signal: stop.signal, onToken: (token) => arrived.push(token), ...(onProgress && { onProgress }) };
  const answer = run(hooks).then(told).finally(() => {
    ended = true;
    arrived.wake();
  });
  // The error is thrown below, where the answer is awaited.
  answer.catch(() => {});
  try {
    for (;;) {
      const token = arrived.take();
      if (token !== undefined) yield token;
      else if (ended) break;
      else await arrived.wait();
    }
    await answer;
  } finally {
    end();
    stop.abort();
    await answer.catch(() => {});
  }
}
