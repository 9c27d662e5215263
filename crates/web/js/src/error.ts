/** Errors: one class in the page, a plain object on the way from the worker. */

/** What went wrong. A new version may have more codes. */
export type ErrorCode =
  /** The call was cancelled. */
  | 'aborted'
  /** The server could not be reached, or the connection broke again and again. */
  | 'network'
  /** The server answered with an error; `status` has its number. */
  | 'http-status'
  /** The server does not let this page read the file. */
  | 'cors'
  /** The file is no GGUF file; `start` has its first bytes. */
  | 'not-gguf'
  /** The file ends too early. */
  | 'truncated'
  /** The file is not the file any more that the download began with. */
  | 'changed'
  /** The file has another SHA-256; `expected` and `found` have both. */
  | 'digest'
  /** The file is larger than `limits.fileBytes`; `limit` has the number. */
  | 'too-large'
  /** The weights, the cache or the intermediates need more memory than there is. */
  | 'no-memory'
  /**
   * The browser gives the page less space than the file needs; `needed` and `available` have both.
   */
  | 'quota'
  /** Another tab, or another call, works with the file. */
  | 'busy'
  /** A file could not be read. */
  | 'read'
  /** The GPU is gone. The model is loaded again; the call was not repeated. */
  | 'device-lost'
  /** The browser has no usable WebGPU. */
  | 'no-webgpu'
  /** The worker ended. Everything that it had is gone. */
  | 'worker-lost'
  /** The object was closed. */
  | 'closed'
  /** The context is full. */
  | 'context'
  | 'bad-options'
  | 'bad-file'
  | 'unsupported'
  /** The chat template refuses the conversation. */
  | 'template'
  | 'adapter'
  | 'snapshot'
  | 'checkpoint'
  /**
   * The training data or the options of training; `line` has the line of the data, if there is one.
   */
  | 'train'
  /** A number of the model is not finite. */
  | 'not-finite'
  /** A fault of the package. */
  | 'internal'
  | (string & {});

/** An error as it is sent. */
export interface PlainError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** Every error that the package throws. `message` is a sentence for people, with the way out. */
export class WeftError extends Error {
  override readonly name = 'WeftError';
  readonly code: ErrorCode;
  readonly [field: string]: unknown;

  constructor(code: ErrorCode, message: string, fields: Readonly<Record<string, unknown>> = {}, options?: ErrorOptions) {
    super(message, options);
    Object.assign(this, fields);
    this.code = code;
  }
}

/** Names of errors of the browser, with the code and the words that they get. */
const OF_BROWSER: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  AbortError: ['aborted', 'the call was cancelled'],
  QuotaExceededError: ['quota', 'the browser gives this page no more space; delete files of the cache, or free space on the disk'],
  NotReadableError: ['read', 'the file could not be read; it was changed or removed after it was chosen: choose it again'],
  NotFoundError: ['read', 'the file is not there any more; choose it again'],
  NotAllowedError: ['read', 'the browser does not let this page read the file any more; choose it again'],
  NoModificationAllowedError: ['busy', 'another tab works with this file of the cache; wait for it, or close it'],
  DataCloneError: ['bad-options', 'an option cannot be sent to the worker; give plain data without functions'],
};

function isPlain(error: unknown): error is PlainError {
  const { code, message } = (error ?? {}) as Partial<PlainError>;
  return typeof code === 'string' && typeof message === 'string';
}

function nameOf(error: unknown): string {
  return String((error as { name?: unknown } | undefined)?.name ?? '');
}

/**
 * Whether nothing in the worker can go on: WebAssembly trapped, and its memory may be inconsistent.
 */
export function isTrap(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError || /call stack/i.test(nameOf(error) === 'RangeError' ? String(error) : '');
}

/** Any thrown value as an error of the package. */
export function asWeftError(error: unknown): WeftError {
  if (error instanceof WeftError) return error;
  // A DOMException has a number as its code.
  if (isPlain(error)) {
    const { code, message, ...fields } = error;
    return new WeftError(code, message, fields);
  }
  const known = OF_BROWSER[nameOf(error)];
  if (known !== undefined) return new WeftError(known[0], known[1], {}, { cause: error });
  if (nameOf(error) === 'RangeError') {
    return new WeftError('no-memory', 'the browser gives this page no more memory; take a smaller model or a shorter context', {}, { cause: error });
  }
  const detail = String((error as Error | undefined)?.message ?? error);
  return new WeftError('internal', `the package failed (${detail}); load the model again, and report the steps that led here`, {}, { cause: error });
}

/** An error as an object that can be sent. */
export function plain(error: unknown): PlainError {
  const { code, message, name: _name, stack: _stack, cause: _cause, ...fields } = asWeftError(error);
  return { ...fields, code, message };
}

export function aborted(): WeftError {
  return new WeftError('aborted', 'the call was cancelled');
}
