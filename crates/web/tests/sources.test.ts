/** Loading from every source, and every way in which a source can be wrong. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type * as t from '../js/dist/index.js';
import { type World, failure, until, world } from './browser.js';
import { DEFAULT, Server, model, sha256 } from './server.js';

const MEGABYTE = 1 << 20;
let all: World;
let other: Server;
let page: Page;

before(async () => {
  all = await world();
  other = await new Server().start();
  page = await all.page();
});
after(async () => void (await Promise.all([all.close(), other.close()])));

interface Request {
  readonly source: string | string[];
  readonly options?: t.LoadOptions;
}

/** Loads a model, and returns what is told of it. */
function load(request: Request): Promise<t.ModelInfo> {
  return page.evaluate(async ({ source, options }) => {
    const model = await weft.Model.load(source, options);
    await model.close();
    return model.info;
  }, request);
}

const refused = (request: Request) => failure(page, async ({ source, options }: Request) => weft.Model.load(source, options), request);

/** One sentence or two, in which no word of a program stands. */
function isSentence(message: string): void {
  assert.match(message, /^[^\n{}\[\]]{20,320}$/);
  assert.doesNotMatch(message, /undefined|null|NaN|TypeError|Object|Error:/);
  assert.match(message, /[;:,] ?\w+/, 'the way out is missing');
}

test('an address is loaded with one request, whole and in order', async () => {
  const bytes = model(3 * MEGABYTE);
  const url = all.server.put('plain.gguf', { bytes, etag: '"1"' });
  const info = await load({ source: url });
  assert.equal(info.digest, sha256(bytes));
  assert.equal(info.name, 'plain.gguf');
  assert.deepEqual(all.server.of('plain.gguf').map(({ start, status }) => [start, status]), [[0, 206]]);
});

test('without a cache an address is streamed, and far small reads do not end the stream', async () => {
  const bytes = model(10 * MEGABYTE);
  const url = all.server.put('streamed.gguf', { bytes, etag: '"1"' });
  assert.equal((await load({ source: url, options: { cache: 'none', sha256: sha256(bytes) } })).digest, sha256(bytes));
  const asked = all.server.of('streamed.gguf');
  assert.ok(asked.some(({ start, end }) => start === bytes.length - 16 && end === bytes.length), 'the last 16 bytes come alone');
  assert.ok(asked.length <= 3, `${asked.length} requests`);
});

test('a server without ranges streams the file once', async () => {
  const bytes = model(12 * MEGABYTE);
  const url = all.server.put('whole.gguf', { bytes, ranges: false });
  assert.equal((await load({ source: url, options: { cache: 'none' } })).digest, sha256(bytes));
  assert.equal(all.server.of('whole.gguf').length, 1);
});

for (const cache of ['none', 'opfs'] as const) {
  test(`a server that tells no length is read to its end (cache ${cache})`, async () => {
    const bytes = model(2 * MEGABYTE);
    const url = all.server.put(`unknown-${cache}.gguf`, { bytes, ranges: false, length: false });
    assert.equal((await load({ source: url, options: { cache } })).digest, sha256(bytes));
  });

  test(`a split model is found from the address of one part (cache ${cache})`, async () => {
    const parts = [model(MEGABYTE), model(MEGABYTE + 7), model(300_000)];
    const name = (number: number) => `split-${cache}-0000${number}-of-00003.gguf`;
    const urls = parts.map((bytes, index) => all.server.put(name(index + 1), { bytes, etag: '"1"' }));
    const digest = sha256(Buffer.concat(parts));
    assert.equal((await load({ source: urls[1]!, options: { cache } })).digest, digest);
    assert.equal((await load({ source: urls, options: { cache, sha256: parts.map(sha256) } })).digest, digest);
  });
}

test('a file, its bytes and a handle give the same model as its address', async () => {
  const bytes = model(2 * MEGABYTE);
  const url = all.server.put('local.gguf', { bytes });
  const digests = await page.evaluate(async ({ url, sha256 }) => {
    const buffer = await (await fetch(url)).arrayBuffer();
    const folder = await navigator.storage.getDirectory();
    const handle = await folder.getFileHandle('mine.gguf', { create: true });
    const writable = await handle.createWritable();
    await writable.write(buffer);
    await writable.close();
    const half = new Uint8Array(buffer, 0, buffer.byteLength);
    const sources = [new File([buffer], 'a.gguf'), buffer, half, handle];
    const found: string[] = [];
    for (const source of sources) {
      const model = await weft.Model.load(source, { sha256 });
      found.push(model.info.digest);
      await model.close();
    }
    return { found, left: buffer.byteLength };
  }, { url, sha256: sha256(bytes) });
  assert.deepEqual(digests.found, Array(4).fill(sha256(bytes)));
  assert.equal(digests.left, bytes.length, 'the bytes of the page stay');
});

test('the default model comes with the package, and is not cached twice', async () => {
  assert.equal((await load({ source: 'default' })).digest, sha256(DEFAULT));
  const files = await page.evaluate(() => weft.cache.list());
  assert.equal(files.some(({ url }) => url.endsWith('default.gguf')), false);
});

test('an inspection reads the header and no weights', async () => {
  const bytes = model(64 * MEGABYTE);
  const url = all.server.put('inspected.gguf', { bytes, etag: '"1"' });
  const seen = await page.evaluate(async (url) => {
    const looked = await weft.Model.inspect(url);
    const needs = await looked.needs({ context: 64 });
    const [file] = (await weft.cache.list()).filter((file) => file.url === url);
    await looked.close();
    return { info: looked.info, needs, present: file!.present, whole: file!.whole };
  }, url);
  assert.equal(seen.info.fileBytes, bytes.length);
  assert.equal(seen.needs.kv, 64);
  assert.equal(seen.whole, false);
  assert.ok(seen.present < 16 * MEGABYTE, `${seen.present} bytes came`);
});

test('an inspection is loaded without its header coming again', async () => {
  const bytes = model(4 * MEGABYTE);
  const url = all.server.put('looked.gguf', { bytes, etag: '"1"' });
  const digest = await page.evaluate(async (url) => {
    const looked = await weft.Model.inspect(url);
    const model = await looked.load();
    await model.close();
    return model.info.digest;
  }, url);
  assert.equal(digest, sha256(bytes));
  assert.ok(all.server.of('looked.gguf').slice(1).every(({ start }) => start > 0));
});

test('a connection that breaks goes on at its byte', async () => {
  const bytes = model(6 * MEGABYTE);
  const url = all.server.put('cut.gguf', { bytes, etag: '"1"', cuts: [MEGABYTE, 3 * MEGABYTE] });
  assert.equal((await load({ source: url })).digest, sha256(bytes));
  const starts = all.server.of('cut.gguf').map(({ start }) => start);
  assert.equal(starts.length, 3);
  assert.ok(starts[1]! > 0 && starts[1]! <= MEGABYTE && starts[2]! > starts[1]!, String(starts));
});

test('a busy server is asked again, and Retry-After is kept', async () => {
  const bytes = model(100_000);
  const statuses = [{ status: 503 }, { status: 429, headers: { 'retry-after': '1' } }];
  const url = all.server.put('busy.gguf', { bytes, etag: '"1"', statuses });
  const began = Date.now();
  assert.equal((await load({ source: url })).digest, sha256(bytes));
  assert.ok(Date.now() - began >= 1000);
  assert.deepEqual(all.server.of('busy.gguf').map(({ status }) => status), [503, 429, 206]);
});

test('a server that stays busy ends in a sentence', async () => {
  const statuses = Array(10).fill({ status: 503 });
  const error = await refused({ source: all.server.put('down.gguf', { bytes: model(1000), statuses }) });
  assert.equal(error.code, 'http-status');
  assert.equal(error.status, 503);
  isSentence(error.message);
});

test('a file that changes while it comes is refused', async () => {
  const bytes = model(6 * MEGABYTE);
  const file = { bytes, etag: '"1"', cuts: [3 * MEGABYTE] };
  const url = all.server.put('moving.gguf', file);
  const ended = refused({ source: url });
  await until(() => file.cuts.length === 0, 'the cut');
  all.server.put('moving.gguf', { bytes: model(6 * MEGABYTE), etag: '"2"' });
  const error = await ended;
  assert.equal(error.code, 'changed');
  isSentence(error.message);
});

const wrong: [string, (name: string) => Request, string, Record<string, unknown>?][] = [
  ['a missing file', (name) => ({ source: `${all.server.url}model/${name}` }), 'http-status', { status: 404 }],
  ['a web page', (name) => ({ source: all.server.put(name, { bytes: Buffer.from('<!doctype html><title>Model card</title>') }) }), 'not-gguf', { start: '<!doctype html><title>Mo' }],
  ['another kind of file', (name) => ({ source: all.server.put(name, { bytes: Buffer.from('PK\x03\x04zip') }) }), 'not-gguf'],
  ['an empty file', (name) => ({ source: all.server.put(name, { bytes: Buffer.alloc(0), ranges: false }) }), 'not-gguf'],
  ['a server without CORS', (name) => ({ source: other.put(name, { bytes: model(1000) }) }), 'cors'],
  ['a host that is not there', () => ({ source: 'http://localhost:9/model.gguf' }), 'network'],
  ['a truncated file', (name) => ({ source: all.server.put(name, { bytes: model(200_000, 400_000), etag: '"1"' }) }), 'truncated'],
  ['a wrong digest', (name) => ({ source: all.server.put(name, { bytes: model(200_000), etag: '"1"' }), options: { sha256: 'ab'.repeat(32) } }), 'digest'],
  ['a wrong digest without a cache', (name) => ({ source: all.server.put(name, { bytes: model(200_000) }), options: { sha256: 'ab'.repeat(32), cache: 'none' } }), 'digest'],
  ['a file above the limit', (name) => ({ source: all.server.put(name, { bytes: model(200_000) }), options: { limits: { fileBytes: 1000 } } }), 'too-large'],
  ['an endless body', (name) => ({ source: all.server.put(name, { bytes: model(1000), ranges: false, length: false, endless: true }), options: { limits: { fileBytes: 8 * MEGABYTE } } }), 'too-large'],
  ['an endless body without a cache', (name) => ({ source: all.server.put(name, { bytes: model(1000), ranges: false, length: false, endless: true }), options: { cache: 'none', limits: { fileBytes: 8 * MEGABYTE } } }), 'too-large'],
  ['an endless web page', (name) => ({ source: all.server.put(name, { bytes: Buffer.from('<html>'), ranges: false, length: false, endless: true }) }), 'not-gguf'],
  ['no address', () => ({ source: 'http://' }), 'bad-options'],
  ['no digest', () => ({ source: 'default', options: { sha256: 'abc' } }), 'bad-options'],
  ['no source', () => ({ source: [] }), 'bad-options'],
];

for (const [what, request, code, fields] of wrong) {
  test(`${what} ends in a sentence, and the page goes on`, async () => {
    const name = `wrong ${what}.gguf`;
    const error = await refused(request(name));
    assert.equal(error.name, 'WeftError');
    assert.equal(error.code, code, error.message);
    for (const [key, value] of Object.entries(fields ?? {})) assert.equal(error[key], value);
    isSentence(error.message);
    const kept = await page.evaluate(() => weft.cache.list());
    if (code === 'not-gguf' || code === 'digest') assert.equal(kept.some(({ url }) => decodeURIComponent(url).includes(name)), false, 'the file is not kept');
    assert.equal((await load({ source: 'default' })).digest, sha256(DEFAULT));
  });
}

test('a file of another host is loaded when the host allows it, also without all headers', async () => {
  const bytes = model(5 * MEGABYTE);
  for (const cors of ['', 'ETag, Content-Range']) {
    const name = `allowed${cors.length}.gguf`;
    const url = other.put(name, { bytes, etag: '"1"', lastModified: 'Mon, 01 Jan 2024 00:00:00 GMT', cors, cuts: [2 * MEGABYTE] });
    assert.equal((await load({ source: url })).digest, sha256(bytes));
    assert.equal(other.asked.some((one) => one.name === name && one.method === 'OPTIONS'), false, 'no second request');
  }
});

test('a part of a split model that is missing is named', async () => {
  const error = await failure(page, async () => {
    const part = (number: number) => new File(['GGUF'], `m-0000${number}-of-00003.gguf`);
    await weft.Model.load([part(3), part(1)]);
  }, undefined);
  assert.equal(error.code, 'bad-file');
  assert.equal(error.missing, 2);
  isSentence(error.message);
});
