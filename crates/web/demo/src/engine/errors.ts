/** Errors as sentences: the words of the engine, or a sentence with the way out. */

interface Coded {
  readonly code: string;
  readonly message: string;
  readonly line?: number;
}

/** Whether the error is a `WeftError`, whose message is written for the user. */
export function isWeftError(error: unknown): error is Error & Coded {
  return error instanceof Error && error.name === 'WeftError' && typeof (error as { code?: unknown }).code === 'string';
}

export function isCancelled(error: unknown): boolean {
  if (error instanceof DOMException && error.name === 'AbortError') return true;
  return isWeftError(error) && error.code === 'aborted';
}

/**
 * What the error lost: the GPU, after which the package loads the model again by itself, or the
 * worker with everything that it had.
 */
export function lossOf(error: unknown): 'device' | 'worker' | undefined {
  if (!isWeftError(error)) return undefined;
  return error.code === 'device-lost' ? 'device' : error.code === 'worker-lost' ? 'worker' : undefined;
}

/** The line of the data that the error is about, if it is about one. */
export function lineOf(error: unknown): number | undefined {
  return isWeftError(error) && typeof error.line === 'number' ? error.line : undefined;
}

/** The name of a file or of a tensor at the start of a sentence keeps its letters. */
const NAME = /^\S*[\w`]\.[\w]/;

function asSentence(text: string): string {
  const trimmed = text.trim();
  const capital = NAME.test(trimmed) ? trimmed : trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

/** One sentence for the user. */
export function sentenceOf(error: unknown): string {
  if (isWeftError(error)) return asSentence(error.message);
  if (error instanceof DOMException && error.name === 'QuotaExceededError') {
    return 'The browser gives this page no more space: delete a model or a conversation, then try again.';
  }
  if (error instanceof RangeError) {
    return 'The browser gives this page no more memory: take a smaller model or a shorter context.';
  }
  const detail = error instanceof Error ? error.message : String(error);
  return asSentence(`Something went wrong in the page; try again, or reload it (${detail.slice(0, 200)})`);
}
