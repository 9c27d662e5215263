/** One request for a range of a file, and what the answer says of the file. */
import { WeftError } from '../error.js';
import { Attempts, Passing, isPassing, retryAfter } from './retry.js';

/** What tells whether a file is still the same. */
export interface Identity {
  /** Bytes of the file; unknown if the server does not tell. */
  readonly length: number | undefined;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

export interface Answer {
  readonly identity: Identity;
  /** Whether the server gives ranges. */
  readonly ranges: boolean;
  /** Offset of the first byte of the body. */
  readonly start: number;
  readonly body: Body;
}

/** The bytes of an answer, as they come. */
export class Body {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #url: string;
  /** Read, and not given yet. */
  #rest: Uint8Array | undefined;

  constructor(stream: ReadableStream<Uint8Array>, url: string) {
    this.#reader = stream.getReader();
    this.#url = url;
  }

  /** The next bytes, or nothing at the end. */
  async next(): Promise<Uint8Array | undefined> {
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest !== undefined) return rest;
    try {
      return (await this.#reader.read()).value;
    } catch (error) {
      // A body fails with an error of type, whatever happened to the connection.
      throw error instanceof TypeError ? new Passing(broken(this.#url, error)) : error;
    }
  }

  /** Drops bytes. */
  async skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) {
      const next = await this.next();
      if (next === undefined) throw new Passing(broken(this.#url, undefined));
      if (next.length > left) this.#rest = next.subarray(left);
      left -= next.length;
    }
  }
}

function broken(url: string, cause: unknown): WeftError {
  const message = `the connection to ${new URL(url).host} broke while ${nameOf(url)} came; check the connection, and load again (it goes on where it was)`;
  return new WeftError('network', message, { url }, { cause });
}

export interface Range {
  readonly start: number;
  /** Behind the last byte. Without it the range goes to the end of the file. */
  readonly end?: number;
}

/** A server that asks for a longer wait is not waited for. */
const LONGEST_WAIT_MS = 60_000;

/** The longest name of a file in a message. */
const SHOWN = 80;

/** The file's name in an address, for messages and for the engine. */
export function nameOf(url: string): string {
  const { pathname, host, protocol } = new URL(url);
  if (protocol === 'data:') return 'data';
  const last = pathname.split('/').pop() || host;
  try {
    return decodeURIComponent(last).slice(0, SHOWN);
  } catch {
    return last.slice(0, SHOWN);
  }
}

function isOwn(url: string): boolean {
  return new URL(url).origin === self.location.origin;
}

/**
 * Asks for a range. `same` makes a server that knows the header send the whole file if it changed.
 * Another host sees that header only after a second request, which many refuse: there the answer's
 * identity alone is compared.
 */
export async function request(url: string, range: Range, same: Identity | undefined, signal: AbortSignal): Promise<Answer> {
  const headers = new Headers({ Range: `bytes=${range.start}-${range.end === undefined ? '' : range.end - 1}` });
  const validator = strongValidator(same);
  if (validator !== undefined && isOwn(url)) headers.set('If-Range', validator);
  let response: Response;
  try {
    // The cache of this package keeps the file: the browser's own cache would keep it twice.
    response = await fetch(url, { headers, signal, cache: 'no-store', referrerPolicy: 'no-referrer' });
  } catch (error) {
    if (signal.aborted) throw error;
    throw await unreachable(url, signal, error);
  }
  if (response.status !== 206 && response.status !== 200) {
    void response.body?.cancel();
    throw statusError(url, response, range);
  }
  return answerOf(url, response, range);
}

function strongValidator(identity: Identity | undefined): string | undefined {
  const { etag, lastModified } = identity ?? {};
  return etag?.startsWith('W/') ? undefined : (etag ?? lastModified);
}

function answerOf(url: string, response: Response, range: Range): Answer {
  const { headers, status } = response;
  const start = status === 206 ? range.start : 0;
  const total = /\/(\d+)\s*$/.exec(headers.get('Content-Range') ?? '')?.[1];
  // A compressed answer announces its compressed length.
  const announced = headers.has('Content-Encoding') ? null : headers.get('Content-Length');
  const toEnd = status === 200 || range.end === undefined;
  const length = total ?? (announced !== null && toEnd ? Number(announced) + start : undefined);
  return {
    identity: {
      length: length === undefined ? undefined : Number(length),
      etag: headers.get('ETag') ?? undefined,
      lastModified: headers.get('Last-Modified') ?? undefined,
    },
    ranges: status === 206,
    start,
    body: new Body(response.body ?? new Blob().stream(), url),
  };
}

/** What to tell of a request that got no answer that the page may see. */
async function unreachable(url: string, signal: AbortSignal, cause: unknown): Promise<Error> {
  const name = nameOf(url);
  if (!isOwn(url) && (await isReachable(url, signal))) {
    const message = `the server ${new URL(url).host} answers, but does not let this page read ${name}; download the file and choose it from the disk, or use a server that sends CORS headers`;
    return new WeftError('cors', message, { url }, { cause });
  }
  const way = navigator.onLine === false ? 'the browser is offline: connect it, and load again' : 'check the address and the connection, and load again';
  return new Passing(new WeftError('network', `${name} cannot be fetched from ${new URL(url).host}; ${way} (it goes on where it was)`, { url }, { cause }));
}

/** Whether the server answers at all to a request whose answer the page does not see. */
async function isReachable(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    await fetch(url, { method: 'HEAD', mode: 'no-cors', signal, cache: 'no-store', referrerPolicy: 'no-referrer' });
    return true;
  } catch {
    return false;
  }
}

const WAYS: Readonly<Record<number, string>> = {
  401: 'the server wants a login; download the file with it, and choose the file from the disk',
  403: 'the server refuses it; download the file where you have access, and choose it from the disk',
  404: 'there is no such file; check the address',
  410: 'the file is gone; look for another address',
  416: 'the file is shorter than it was; load it again',
  429: 'the server has too many requests; wait a few minutes, and load again',
};

function statusError(url: string, response: Response, range: Range): Error {
  const { status } = response;
  const way = WAYS[status] ?? (status >= 500 ? 'the server has a fault; load again later' : 'check the address');
  const code = status === 416 && range.start > 0 ? 'changed' : 'http-status';
  const error = new WeftError(code, `${nameOf(url)}: the server answered ${status}: ${way}`, { url, status });
  const after = retryAfter(response.headers.get('Retry-After'));
  return isPassing(status) && (after ?? 0) <= LONGEST_WAIT_MS ? new Passing(error, after) : error;
}

/** Whether the parts of two identities that both have agree, and the lengths. */
export function isSame(one: Identity, other: Identity): boolean {
  const agree = <T>(a: T | undefined, b: T | undefined) => a === undefined || b === undefined || a === b;
  return agree(one.length, other.length) && agree(one.etag, other.etag) && agree(one.lastModified, other.lastModified);
}

/** Exactly these bytes of a file that is known, for reads far from where its stream is. */
export async function fetchRange(url: string, start: number, length: number, same: Identity, signal: AbortSignal): Promise<Uint8Array> {
  const attempts = new Attempts();
  const bytes = new Uint8Array(length);
  for (let done = 0; done < length; ) {
    try {
      const answer = await request(url, { start: start + done, end: start + length }, same, signal);
      if (!isSame(same, answer.identity)) throw changed(url);
      await answer.body.skip(start + done - answer.start);
      while (done < length) {
        const next = await answer.body.next();
        if (next === undefined) throw new Passing(cutOff(url, start + done, start + length));
        bytes.set(next.subarray(0, length - done), done);
        done += next.length;
        attempts.succeeded();
      }
    } catch (error) {
      await attempts.failed(error, signal);
    }
  }
  return bytes;
}

export function changed(url: string): WeftError {
  return new WeftError('changed', `${nameOf(url)} was changed on the server while it came; load it again`, { url });
}

/** The error of a server that ends a file too early. */
export function cutOff(url: string, at: number, length: number): WeftError {
  const message = `${nameOf(url)}: the server ends the file at byte ${at} of ${length}; load it again, or from another server`;
  return new WeftError('truncated', message, { url, at, length });
}
