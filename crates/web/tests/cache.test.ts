/** Downloads that are interrupted, cancelled, shared by two tabs, damaged or too large. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type World, failure, gate, until, world } from './browser.js';
import { model, sha256 } from './server.js';

const MEGABYTE = 1 << 20;
const LENGTH = 6 * MEGABYTE;
const GATE = 4 * MEGABYTE;
let all: World;

before(async () => void (all = await world()));
after(() => all.close());

const load = (page: Page, url: string) =>
  page.evaluate(async (url) => {
    const phases = new Set<string>();
    const model = await weft.Model.load(url, { onProgress: ({ phase }) => phases.add(phase) });
    await model.close();
    return { digest: model.info.digest, notes: model.info.notes, phases: [...phases] };
  }, url);

const files = (page: Page) => page.evaluate(() => weft.cache.list());

/** Begins a load that stops at the gate, and waits until so much is on the disk. */
async function interrupted(page: Page, url: string): Promise<void> {
  await page.evaluate((url) => {
    kept.stop = new AbortController();
    kept.load = weft.Model.load(url, { signal: kept.stop.signal }).then(
      () => 'loaded',
      (error) => error.code,
    );
  }, url);
  for (let present = 0; present < 3 * MEGABYTE; ) {
    present = (await files(page)).find((file) => file.url === new URL(url).href)?.present ?? 0;
  }
}

/** Changes the browser in the worker before the worker begins. */
async function changeWorker(page: Page, code: string): Promise<void> {
  await page.context().route('**/package/worker.js', async (route) => {
    const body = await (await route.fetch()).text();
    await route.fulfill({ contentType: 'text/javascript', body: `${code}\n${body}` });
  });
}

const starts = (name: string) => all.server.of(name).map(({ start }) => start);

for (const end of ['is closed', 'crashes'] as const) {
  test(`a tab that ${end} leaves a download that goes on`, async () => {
    const bytes = model(LENGTH);
    const name = `tab ${end}.gguf`;
    const { open, release } = gate();
    const file = { bytes, etag: '"1"', gate: { at: GATE, open } };
    const url = all.server.put(name, file);
    const page = await all.page();
    await interrupted(page, url);
    if (end === 'is closed') {
      await page.close();
    } else {
      const session = await page.context().newCDPSession(page);
      const crashed = page.waitForEvent('crash');
      session.send('Page.crash').catch(() => {});
      await crashed;
    }
    all.server.put(name, { bytes, etag: '"1"' });
    const again = await all.page(page.context());
    const { digest, notes } = await load(again, url);
    release();
    assert.equal(digest, sha256(bytes));
    assert.deepEqual(notes, []);
    assert.equal(starts(name).length, 2);
    assert.ok(starts(name)[1]! >= 3 * MEGABYTE && starts(name)[1]! <= GATE, String(starts(name)));
    const [kept] = await files(again);
    assert.deepEqual([kept!.whole, kept!.present, kept!.sha256], [true, LENGTH, sha256(bytes)]);
    await page.context().close();
  });
}

test('a file that is whole is loaded without the server', async () => {
  const bytes = model(LENGTH);
  const url = all.server.put('offline.gguf', { bytes, etag: '"1"' });
  const page = await all.page();
  await load(page, url);
  all.server.files.delete('offline.gguf');
  assert.equal((await load(page, url)).digest, sha256(bytes));
  assert.equal(starts('offline.gguf').length, 1);
  await page.context().close();
});

const changes: [string, { etag?: string; lastModified?: string; longer?: number }, RegExp][] = [
  ['another ETag', { etag: '"2"' }, /changed on the server/],
  ['another length', { etag: '"1"', longer: 9 }, /changed on the server/],
  ['a length below what is there', { etag: '"2"', longer: -5 * MEGABYTE }, /changed on the server/],
];

for (const [what, { longer = 0, ...served }, note] of changes) {
  test(`a download whose file has ${what} begins again, and says so`, async () => {
    const name = `resumed with ${what}.gguf`;
    const { open, release } = gate();
    const url = all.server.put(name, { bytes: model(LENGTH), etag: '"1"', gate: { at: GATE, open } });
    const page = await all.page();
    await interrupted(page, url);
    await page.close();
    release();
    const bytes = model(LENGTH + longer);
    all.server.put(name, { bytes, ...served });
    const loaded = await load(await all.page(page.context()), url);
    assert.equal(loaded.digest, sha256(bytes));
    assert.match(loaded.notes.join(), note);
    await page.context().close();
  });
}

test('without ETag and date a download begins again, since nothing tells whether the file is the same', async () => {
  const { open, release } = gate();
  const bytes = model(LENGTH);
  const url = all.server.put('nameless.gguf', { bytes, gate: { at: GATE, open } });
  const page = await all.page();
  await interrupted(page, url);
  await page.close();
  release();
  all.server.put('nameless.gguf', { bytes });
  const loaded = await load(await all.page(page.context()), url);
  assert.equal(loaded.digest, sha256(bytes));
  assert.match(loaded.notes.join(), /does not tell/);
  await page.context().close();
});

test('a load that is cancelled ends soon, and the next one asks for the rest', async () => {
  const bytes = model(LENGTH);
  const { open, release } = gate();
  const file = { bytes, etag: '"1"', gate: { at: GATE, open } as { at: number; open: Promise<void> } | undefined };
  const url = all.server.put('cancelled.gguf', file as never);
  const page = await all.page();
  await interrupted(page, url);
  const { code, ms } = await page.evaluate(async () => {
    const began = performance.now();
    kept.stop.abort();
    return { code: await kept.load, ms: performance.now() - began };
  });
  assert.equal(code, 'aborted');
  assert.ok(ms < 3000, `${ms} ms`);
  release();
  file.gate = undefined;
  assert.equal((await load(page, url)).digest, sha256(bytes));
  assert.ok(starts('cancelled.gguf').at(-1)! >= 3 * MEGABYTE);
  await page.context().close();
});

test('a damaged file is found, and comes again', async () => {
  const bytes = model(LENGTH);
  const url = all.server.put('damaged.gguf', { bytes, etag: '"1"' });
  const page = await all.page();
  await load(page, url);
  assert.equal((await page.evaluate((url) => weft.cache.verify(url), url)).whole, true);
  await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('weft');
    for await (const [name, handle] of folder.entries()) {
      if (!name.endsWith('.gguf')) continue;
      const writable = await (handle as FileSystemFileHandle).createWritable({ keepExistingData: true });
      await writable.write({ type: 'write', position: 3_000_000, data: new Uint8Array([1, 2, 3]) });
      await writable.close();
    }
  });
  const verified = await page.evaluate((url) => weft.cache.verify(url), url);
  assert.equal(verified.whole, false);
  assert.equal(verified.expected, sha256(bytes));
  assert.notEqual(verified.found, verified.expected);
  assert.equal((await load(page, url)).digest, sha256(bytes));
  assert.equal(starts('damaged.gguf').length, 2);
  await page.context().close();
});

test('a file of the cache that was cut off is not loaded', async () => {
  const bytes = model(LENGTH);
  const url = all.server.put('short.gguf', { bytes, etag: '"1"' });
  const page = await all.page();
  await load(page, url);
  await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('weft');
    for await (const [name, handle] of folder.entries()) {
      if (!name.endsWith('.gguf')) continue;
      const writable = await (handle as FileSystemFileHandle).createWritable({ keepExistingData: true });
      await writable.truncate(1_000_000);
      await writable.close();
    }
  });
  const { digest, notes } = await load(page, url);
  assert.equal(digest, sha256(bytes));
  assert.match(notes.join(), /damaged/);
  await page.context().close();
});

test('the second of two tabs waits for the download of the first, and reads its file', async () => {
  const bytes = model(LENGTH);
  const { open, release } = gate();
  const url = all.server.put('shared.gguf', { bytes, etag: '"1"', gate: { at: GATE, open } });
  const first = await all.page();
  const second = await all.page(first.context());
  await interrupted(first, url);
  await second.evaluate((url) => {
    kept.waits = [];
    kept.load = weft.Model.load(url, { onProgress: (progress) => progress.phase === 'wait' && kept.waits.push(progress.done) }).then((model) => model.info.digest);
  }, url);
  await second.waitForFunction(() => kept.waits.length > 0);
  const busy = await failure(second, (url: string) => weft.cache.delete(url), url);
  assert.equal(busy.code, 'busy');
  release();
  assert.equal(await first.evaluate(() => kept.load), 'loaded');
  assert.equal(await second.evaluate(() => kept.load), sha256(bytes));
  assert.equal(starts('shared.gguf').length, 1);
  const both = await Promise.all([load(first, url), load(second, url)]);
  assert.deepEqual(both.map(({ digest }) => digest), [sha256(bytes), sha256(bytes)]);
  await first.context().close();
});

test('a tab that dies while another waits hands its download over', async () => {
  const bytes = model(LENGTH);
  const { open, release } = gate();
  const url = all.server.put('inherited.gguf', { bytes, etag: '"1"', gate: { at: GATE, open } });
  const first = await all.page();
  const second = await all.page(first.context());
  await interrupted(first, url);
  await second.evaluate((url) => {
    kept.waits = 0;
    kept.load = weft.Model.load(url, { onProgress: ({ phase }) => phase === 'wait' && (kept.waits += 1) }).then((model) => model.info.digest);
  }, url);
  await second.waitForFunction(() => kept.waits > 0);
  all.server.put('inherited.gguf', { bytes, etag: '"1"' });
  await first.close();
  assert.equal(await second.evaluate(() => kept.load), sha256(bytes));
  release();
  assert.ok(starts('inherited.gguf')[1]! >= 3 * MEGABYTE);
  await first.context().close();
});

test('a quota that is too small is told before the download, with both numbers and what could go', async () => {
  const page = await all.page();
  await changeWorker(page, `navigator.storage.estimate = async () => ({ usage: ${MEGABYTE}, quota: ${16 * MEGABYTE} });`);
  const old = all.server.put('old.gguf', { bytes: model(MEGABYTE), etag: '"1"' });
  await load(page, old);
  const { quota, used } = await page.evaluate(() => weft.cache.storage());
  assert.deepEqual([quota, used], [16 * MEGABYTE, MEGABYTE]);
  const url = all.server.put('huge.gguf', { bytes: model(40 * MEGABYTE), etag: '"1"' });
  const error = await failure(page, (url: string) => weft.Model.load(url), url);
  assert.equal(error.code, 'quota');
  assert.ok((error.needed as number) > 16 * MEGABYTE && (error.available as number) < 16 * MEGABYTE);
  assert.ok((error.candidates as string[]).includes(old));
  assert.match(error.message, /GB.*GB.*cache/);
  assert.ok((await files(page)).find((file) => file.url === url)!.present < 24 * MEGABYTE, 'the download did not begin');
  await page.context().close();
});

test('files are listed, the last one first, and deleted', async () => {
  const page = await all.page();
  const urls = ['one.gguf', 'two.gguf'].map((name) => all.server.put(name, { bytes: model(MEGABYTE), etag: '"1"' }));
  for (const url of urls) await load(page, url);
  await load(page, urls[0]!);
  assert.deepEqual((await files(page)).map(({ url }) => url), urls);
  await page.evaluate((url) => weft.cache.delete(url), urls[0]!);
  assert.deepEqual((await files(page)).map(({ url }) => url), [urls[1]]);
  await page.evaluate(async () => weft.cache.delete((await weft.cache.list())[0]!));
  assert.deepEqual(await files(page), []);
  await page.context().close();
});

test('a record that was torn is no file', async () => {
  const bytes = model(MEGABYTE);
  const url = all.server.put('torn.gguf', { bytes, etag: '"1"' });
  const page = await all.page();
  await load(page, url);
  await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('weft');
    for await (const [name, handle] of folder.entries()) {
      if (!name.endsWith('.json')) continue;
      const text = await (await (handle as FileSystemFileHandle).getFile()).text();
      const writable = await (handle as FileSystemFileHandle).createWritable();
      await writable.write(text.slice(0, text.length / 2));
      await writable.close();
    }
  });
  assert.deepEqual(await files(page), []);
  assert.equal((await load(page, url)).digest, sha256(bytes));
  assert.equal(starts('torn.gguf').length, 2);
  await page.context().close();
});

test('without a private file system a model is loaded all the same, with a note', async () => {
  const bytes = model(MEGABYTE);
  const url = all.server.put('private.gguf', { bytes, etag: '"1"' });
  const page = await all.page();
  await changeWorker(page, "navigator.storage.getDirectory = () => Promise.reject(new DOMException('no', 'SecurityError'));");
  const { digest, notes } = await load(page, url);
  assert.equal(digest, sha256(bytes));
  assert.match(notes.join(), /not kept.*private file system/);
  await until(() => starts('private.gguf').length >= 1, 'the request');
  await page.context().close();
});
