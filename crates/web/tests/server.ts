/** A server with the package, and with files that come in every way in which files can come. */
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../../js/dist/', import.meta.url));
const BUILT = fileURLToPath(new URL('./', import.meta.url));
const TYPES: Record<string, string> = { '.js': 'text/javascript', '.html': 'text/html', '.gguf': 'application/octet-stream' };

const PAGE = `<!doctype html><title>test</title><script type="module">
globalThis.weft = await import('/package/index.js');
</script>`;

/** How a file is served. */
export interface Served {
  bytes: Buffer;
  etag?: string;
  lastModified?: string;
  /** Whether ranges are given. Default true. */
  ranges?: boolean;
  /** Whether the length is told. Default true. */
  length?: boolean;
  /** Whether pages of other hosts may read it, and which headers they see. Default no. */
  cors?: string;
  /** Statuses of the next answers, before the file is served. */
  statuses?: { status: number; headers?: Record<string, string> }[];
  /** The connection of the next answers breaks at these offsets of the file. */
  cuts?: number[];
  /** The body stops at this offset of the file, and waits until `open` is called. */
  gate?: { at: number; open: Promise<void> };
  /** The body never ends. */
  endless?: boolean;
}

export interface Asked {
  readonly name: string;
  readonly method: string;
  /** First byte that was asked for. */
  readonly start: number;
  /** Behind the last byte; nothing for the end of the file. */
  readonly end: number | undefined;
  readonly status: number;
}

/** A file that the fake engine takes: GGUF, the length, and random bytes. */
export function model(length: number, told = length): Buffer {
  const bytes = randomBytes(length);
  bytes.write('GGUF', 0, 'latin1');
  bytes.writeBigUInt64LE(BigInt(told), 8);
  return bytes;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export class Server {
  readonly files = new Map<string, Served>();
  readonly asked: Asked[] = [];
  readonly #http = createServer((request, response) => {
    this.#answer(request, response).catch(() => response.destroy());
  });

  async start(): Promise<this> {
    await new Promise<void>((ready) => this.#http.listen(0, '127.0.0.1', ready));
    return this;
  }

  get url(): string {
    return `http://localhost:${(this.#http.address() as AddressInfo).port}/`;
  }

  /** Serves a file, and returns its address. */
  put(name: string, file: Served): string {
    this.files.set(name, file);
    return `${this.url}model/${name}`;
  }

  /** The requests for a file. */
  of(name: string): Asked[] {
    return this.asked.filter((one) => one.name === name && one.method === 'GET');
  }

  async close(): Promise<void> {
    const closed = new Promise((done) => this.#http.close(done));
    this.#http.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    const [, kind, name = ''] = /^\/(package|model)\/(.*)$/.exec(pathname) ?? [];
    if (kind === 'model') return this.#model(decodeURIComponent(name), request, response);
    if (kind !== 'package') return void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    const path = name.startsWith('engine/') ? join(BUILT, name.slice('engine/'.length).replace('weft.js', 'fake-engine.js')) : join(PACKAGE, name);
    const body = name === 'default.gguf' ? DEFAULT : await readFile(path).catch(() => undefined);
    if (body === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream' }).end(body);
  }

  async #model(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = this.files.get(name);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const start = Number(from ?? 0);
    const log = (status: number) => this.asked.push({ name, method: request.method ?? '', start, end: to ? Number(to) + 1 : undefined, status });
    const special = file?.statuses?.shift();
    if (file === undefined || special) {
      const status = special?.status ?? 404;
      log(status);
      return void response.writeHead(status, special?.headers).end('no');
    }
    const { bytes, etag, lastModified } = file;
    const headers: Record<string, string | number> = {
      'content-type': 'application/octet-stream',
      ...(etag && { etag }),
      ...(lastModified && { 'last-modified': lastModified }),
      ...(file.cors !== undefined && { 'access-control-allow-origin': '*', 'access-control-expose-headers': file.cors }),
    };
    const unlike = request.headers['if-range'] !== undefined && ![etag, lastModified].includes(request.headers['if-range'] as string);
    const isPart = from !== undefined && file.ranges !== false && !unlike;
    if (isPart && start >= bytes.length) {
      log(416);
      return void response.writeHead(416, headers).end();
    }
    const [begin, end] = isPart ? [start, to ? Number(to) + 1 : bytes.length] : [0, bytes.length];
    if (isPart) headers['content-range'] = `bytes ${begin}-${end - 1}/${bytes.length}`;
    if (file.length !== false) headers['content-length'] = end - begin;
    log(isPart ? 206 : 200);
    response.writeHead(isPart ? 206 : 200, headers);
    await this.#body(file, begin, end, request, response);
  }

  async #body(file: Served, begin: number, end: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { bytes, gate } = file;
    const send = (chunk: Buffer) => new Promise<void>((resolve) => response.write(chunk, () => resolve()));
    if (request.method === 'HEAD') return void response.end();
    const cut = file.cuts?.find((at) => at > begin && at < end);
    if (cut !== undefined) {
      file.cuts!.splice(file.cuts!.indexOf(cut), 1);
      await send(bytes.subarray(begin, cut));
      // What was written reaches the browser before the connection is gone.
      await new Promise((resolve) => setTimeout(resolve, 100));
      response.destroy();
      return;
    }
    if (gate !== undefined && gate.at > begin && gate.at < end) {
      await send(bytes.subarray(begin, gate.at));
      await gate.open;
      response.end(bytes.subarray(gate.at, end));
      return;
    }
    if (file.endless) {
      await send(bytes);
      while (!response.destroyed && !response.closed) await Promise.race([send(randomBytes(1 << 20)), new Promise((resolve) => response.once('close', resolve))]);
      return;
    }
    response.end(bytes.subarray(begin, end));
  }
}

/** The model that comes with the package, here a small one. */
export const DEFAULT = model(100_000);
