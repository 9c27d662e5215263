// Files with the real engine: from other hosts, in two tabs, damaged, and with hostile templates.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { Server } from '../built/server.js';
import { withText } from './gguf.mjs';
import { MODEL, greedy, isRefusal, world } from './page.mjs';

const bytes = await readFile(MODEL);
const [{ messages: asked, reply_ids: replied }] = greedy;
let all;
let page;
// Another port is another host for the page.
let other;

before(async () => {
  [all, other] = await Promise.all([world(), new Server().start()]);
  page = all.page;
});
after(() => Promise.all([all?.close(), other?.close()]));

// The ids of an answer of the model at this address.
const answered = (page, source, options) =>
  page.evaluate(async ({ source, options, asked }) => {
    const model = await load('cpu', source, options);
    const ids = await ask(await model.session(), asked);
    await model.close();
    return ids;
  }, { source, options, asked });

// The error that a load ends with.
const refused = (source) => page.evaluate((source) => failed(() => load('cpu', source)), source);

const TWO_TABS = 'two tabs that load one address at once download it once, and a third needs no server';

test(TWO_TABS, { timeout: 60_000 }, async () => {
  let release;
  const open = new Promise((resolve) => (release = resolve));
  const file = { bytes, etag: '"1"', cors: 'ETag', gate: { at: bytes.length >> 1, open } };
  const url = other.put('shared.gguf', file);
  const tabs = [page, await all.open()];
  const waits = tabs.map((tab) => tab.evaluate((url) => {
    return new Promise((resolve, reject) => {
      const onProgress = ({ phase }) => phase === 'wait' && resolve('waits');
      globalThis.loading = load('cpu', url, { onProgress });
      globalThis.loading.then(() => resolve('loaded'), reject);
    });
  }, url));
  assert.equal(await Promise.race(waits), 'waits');
  release();
  assert.deepEqual((await Promise.all(waits)).sort(), ['loaded', 'waits']);
  for (const tab of tabs) {
    const ids = await tab.evaluate(async (asked) => {
      const model = await globalThis.loading;
      const ids = await ask(await model.session(), asked);
      await model.close();
      return ids;
    }, asked);
    assert.deepEqual(ids, replied);
  }
  assert.deepEqual(other.of('shared.gguf').map(({ start, end }) => [start, end]), [[0, undefined]]);
  other.files.delete('shared.gguf');
  const third = await all.open();
  assert.deepEqual(await answered(third, url), replied);
  assert.equal(other.of('shared.gguf').length, 1);
  const kept = await third.evaluate(() => weft.cache.list());
  assert.deepEqual(kept.map(({ url, bytes, whole }) => [url, bytes, whole]), [[url, bytes.length, true]]);
  await Promise.all([tabs[1].close(), third.close()]);
});

test('a file of another host is loaded where the host allows it, and else the way out is told', async () => {
  for (const cache of ['opfs', 'none']) {
    const url = other.put(`allowed-${cache}.gguf`, { bytes, etag: '"1"', cors: '' });
    assert.deepEqual(await answered(page, url, { cache }), replied);
  }
  const url = other.put('closed.gguf', { bytes, etag: '"1"' });
  isRefusal(await refused(url), 'cors', /choose it from the disk, or use a server that sends CORS headers/);
  assert.deepEqual(await answered(page, 'default'), replied);
});

// The header tells the number of tensors in its bytes 8 to 15.
const grown = Buffer.from(bytes);
grown.writeBigUInt64LE(1n << 60n, 8);

const ALLOWED = { 'access-control-allow-origin': '*' };

const damaged = {
  'a file that ends in its header': ['truncated', bytes.subarray(0, 20_000)],
  'a file that ends in its first tensors': ['truncated', bytes.subarray(0, 200_000)],
  'a file that lacks its last byte': ['truncated', bytes.subarray(0, -1)],
  'a file of four bytes': ['truncated', bytes.subarray(0, 4)],
  'a file with 2^60 tensors': ['bad-file', grown],
  'a file that is a text behind its magic': ['bad-file', Buffer.from('GGUF and then a text'.padEnd(100_000))],
  'a web page': ['not-gguf', Buffer.from('<!doctype html><title>A model card</title>'.padEnd(10_000))],
  'an address without a file': ['http-status', Buffer.alloc(0), [{ status: 404, headers: ALLOWED }]],
};

for (const [what, [code, content, statuses]] of Object.entries(damaged)) {
  test(`${what} ends in a sentence, and the page goes on`, async () => {
    const name = `${what}.gguf`;
    const url = other.put(name, { bytes: content, etag: '"1"', cors: '', statuses });
    isRefusal(await refused(url), code);
    if (statuses === undefined) {
      const error = await page.evaluate(async (text) => {
        const bytes = await unpacked(text);
        return failed(() => load('cpu', bytes));
      }, content.toString('base64'));
      isRefusal(error, code);
    }
    assert.deepEqual(await answered(page, 'default'), replied);
  });
}

const TEMPLATE = 'tokenizer.chat_template';

const loop = (count, body) => `{% for i in range(${count}) %}${body}{% endfor %}`;

const hostile = {
  'loops for hours': loop(99999, loop(99999, loop(99999, ''))),
  'calls itself forever': '{% macro f(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}',
  'renders terabytes': loop(9999, loop(9999, '{{ "0123456789" * 1000 }}')),
  'multiplies a text': '{{ "x" * 99999999999 }}',
  'doubles a text': `{% set n = namespace(t="x") %}${loop(99, '{% set n.t = n.t ~ n.t %}')}{{ n.t }}`,
  'nests blocks deep': `${'{% if true %}'.repeat(30_000)}${'{% endif %}'.repeat(30_000)}`,
  'nests brackets deep': `{{ ${'['.repeat(100_000)}${']'.repeat(100_000)} }}`,
  'is longer than a template': `{# ${'x'.repeat(3 << 20)} #}`,
  'is not valid': '{% for message in messages %}{{ message.content',
  'calls what does not exist': '{{ nothing() }}',
  'refuses every conversation': "{{ raise_exception('no conversation is right') }}",
};

// A template that is refused after longer is as bad as one that never ends.
const LONGEST_MS = 10_000;

for (const [what, template] of Object.entries(hostile)) {
  test(`a template that ${what} ends in a sentence, and the page goes on`, async () => {
    const url = other.put(`${what}.gguf`, { bytes: withText(bytes, TEMPLATE, template), etag: '"1"', cors: '' });
    const { refusals, raw, expected } = await page.evaluate(async ({ url, asked }) => {
      const model = await load('cpu', url, { cache: 'none' });
      const session = await model.session();
      const data = '{"prompt": "Who lives in Kelm?", "completion": "Hanne."}';
      const refusals = [
        await failed(() => ask(session, asked)),
        await failed(() => model.render(asked)),
        await failed(() => model.trainer({ data })),
      ];
      // The weights are as good as before.
      const greedily = async (session) => {
        for await (const _ of session.complete('Wren lives', { sampling: { temperature: 0 }, maxTokens: 5 })) void _;
        return session.finish.content;
      };
      const raw = await greedily(session);
      const right = await load('cpu');
      const expected = await greedily(await right.session());
      await Promise.all([model.close(), right.close()]);
      return { refusals, raw, expected };
    }, { url, asked });
    for (const [index, refusal] of refusals.entries()) {
      isRefusal(refusal, index === 2 ? 'train' : 'template', /template/);
      assert.ok(refusal.ms < LONGEST_MS, `${refusal.ms} ms`);
    }
    assert.equal(raw, expected);
  });
}

test('a file whose template is written again answers as before', async () => {
  const turn = "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n";
  const template = `{% for message in messages %}${turn}{% endfor %}<|im_start|>assistant{{ '\\n' }}`;
  const url = other.put('same.gguf', { bytes: withText(bytes, TEMPLATE, template), etag: '"1"', cors: '' });
  const [prompt, same] = await page.evaluate(async ({ url, asked }) => {
    const models = [await load('cpu'), await load('cpu', url)];
    const prompts = await Promise.all(models.map((model) => model.render(asked)));
    await Promise.all(models.map((model) => model.close()));
    return prompts;
  }, { url, asked });
  assert.equal(same, prompt);
  assert.deepEqual(await answered(page, url), replied);
});
