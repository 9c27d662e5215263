/** The client: answers, cancelling, closing, crashes, lost devices. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Model, Session } from '../js/dist/index.js';
import { type World, failure, world } from './browser.js';

let all: World;
let page: Page;

before(async () => void (all = await world()));
after(() => all.close());

beforeEach(async () => {
  await page?.context().close();
  page = await all.page();
  await page.evaluate(async () => {
    kept.model = await weft.Model.load('default', { device: 'gpu' });
    kept.chat = await (kept.model as Model).session();
    kept.ask = async (text: string, chat: Session = kept.chat) => {
      const tokens: string[] = [];
      for await (const token of chat.send([{ role: 'user', content: text }])) tokens.push(token.text);
      return tokens;
    };
  });
});

test('an answer comes token by token, and ends with its finish', async () => {
  const seen = await page.evaluate(async () => {
    const chat = kept.chat as Session;
    const tokens = await kept.ask('a b c');
    return { tokens, finish: chat.finish, ids: [...(await chat.tokens())] };
  });
  assert.deepEqual(seen.tokens, ['a ', 'b ', 'c']);
  assert.equal(seen.finish?.reason, 'end');
  assert.equal(seen.finish?.content, 'a b c');
  assert.equal(seen.ids.length, 3);
});

test('leaving the loop cancels the answer, and the session goes on', async () => {
  const seen = await page.evaluate(async () => {
    const chat = kept.chat as Session;
    for await (const token of chat.send([{ role: 'user', content: 'slow' }])) if (token.id === 5) break;
    return { finish: chat.finish, next: await kept.ask('x y') };
  });
  assert.equal(seen.finish?.reason, 'cancelled');
  assert.ok(seen.finish!.tokens >= 5 && seen.finish!.tokens < 100, String(seen.finish!.tokens));
  assert.deepEqual(seen.next, ['x ', 'y']);
});

test('a signal ends the answer without an error', async () => {
  const { finish, tokens } = await page.evaluate(async () => {
    const stop = new AbortController();
    let tokens = 0;
    for await (const { id } of (kept.chat as Session).send([{ role: 'user', content: 'slow' }], { signal: stop.signal })) {
      tokens = id;
      if (id === 3) stop.abort();
    }
    return { finish: (kept.chat as Session).finish, tokens };
  });
  assert.equal(finish?.reason, 'cancelled');
  assert.ok(tokens < 100);
});

test('calls on one session run one after the other, and a cancel overtakes them', async () => {
  const seen = await page.evaluate(async () => {
    const chat = kept.chat as Session;
    const stop = new AbortController();
    const order: string[] = [];
    const slow = (async () => {
      for await (const _ of chat.send([{ role: 'user', content: 'slow' }], { signal: stop.signal }));
      order.push('slow');
    })();
    const saved = chat.save().then(() => order.push('save'));
    setTimeout(() => stop.abort(), 100);
    await Promise.all([slow, saved]);
    return order;
  });
  assert.deepEqual(seen, ['slow', 'save']);
});

test('a step that is cancelled is an error with its code, and the next one counts on', async () => {
  const seen = await page.evaluate(async () => {
    const trainer = await (kept.model as Model).trainer({ data: '{}\n{}' });
    const first = await trainer.step();
    const stop = new AbortController();
    const code = await trainer.step({ signal: stop.signal, onProgress: () => stop.abort() }).catch((error) => error.code);
    const checkpoint = await trainer.checkpoint();
    const next = await trainer.step();
    await trainer.restore(checkpoint);
    const after = await trainer.step();
    return { facts: trainer.facts.examples, first: first.number, code, next: next.number, after: after.number, files: (await trainer.savePeft()).map(({ name }) => name) };
  });
  assert.deepEqual(seen, { facts: 2, first: 1, code: 'aborted', next: 2, after: 2, files: ['adapter_config.json', 'adapter_model.safetensors'] });
});

test('a signal that was aborted before stops every call', async () => {
  const error = await failure(page, () => weft.Model.load('default', { signal: AbortSignal.abort() }), undefined);
  assert.equal(error.code, 'aborted');
});

test('an error of the engine keeps its fields', async () => {
  const error = await failure(page, () => (kept.model as Model).trainer({ data: '{}\nno' }), undefined);
  assert.deepEqual([error.name, error.code, error.line], ['WeftError', 'train', 2]);
});

test('options that cannot be sent are an error, and no call is left', async () => {
  const error = await failure(page, async () => {
    for await (const _ of (kept.chat as Session).send([{ role: 'user', content: 'x', extra: () => {} }]));
  }, undefined);
  assert.equal(error.code, 'bad-options');
  assert.deepEqual(await page.evaluate(() => kept.ask('a')), ['a']);
});

test('a closed model frees its sessions, adapters and trainers', async () => {
  const seen = await page.evaluate(async () => {
    const model = kept.model as Model;
    const [chat, adapter] = [kept.chat as Session, await model.adapter([{ name: 'a.gguf', bytes: new Uint8Array(3) }])];
    await model.trainer({ data: '{}' });
    await chat.setAdapters([{ adapter, scale: 0.5 }]);
    const live = (await model.memory()).buffers;
    const running = kept.ask('slow').catch((error: { code: string }) => error.code);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await model.close();
    await model.close();
    const answer = await running;
    return { live, left: (await model.memory()).buffers, answer: answer.length, code: await chat.save().catch((error) => error.code) };
  });
  assert.ok(seen.live >= 4);
  assert.equal(seen.left, 0);
  assert.ok(seen.answer < 100);
  assert.equal(seen.code, 'closed');
});

test('fifty loads and sessions leave nothing behind', async () => {
  const [before, after] = await page.evaluate(async () => {
    const count = async () => (await (kept.model as Model).memory()).buffers;
    const before = await count();
    for (let round = 0; round < 50; round += 1) {
      const model = await weft.Model.load('default');
      const chat = await model.session();
      await kept.ask('a', chat);
      await model.close();
    }
    return [before, await count()];
  });
  assert.equal(after, before);
});

test('what is not closed is freed when it is collected', async () => {
  await page.evaluate(async () => void (await (kept.model as Model).session()));
  const before = await page.evaluate(async () => (await (kept.model as Model).memory()).buffers);
  const session = await page.context().newCDPSession(page);
  const end = Date.now() + 20_000;
  for (let now = before; now >= before; ) {
    assert.ok(Date.now() < end, 'nothing was freed');
    await session.send('HeapProfiler.collectGarbage');
    now = await page.evaluate(async () => (await (kept.model as Model).memory()).buffers);
  }
});

for (const death of ['trap', 'trap later', 'die']) {
  test(`a worker that ends (${death}) rejects what waits, and the next load starts another`, async () => {
    const seen = await page.evaluate(async (death) => {
      const model = kept.model as Model;
      const other = await model.session();
      const waiting = kept.ask('slow', other).catch((error: Error & { code: string }) => [error.code, error.message]);
      const dead = await kept.ask(death).catch((error: Error & { code: string }) => [error.code, error.message]);
      const after = await model.session().catch((error) => error.code);
      await model.close();
      const again = await weft.Model.load('default');
      return { dead, waiting: await waiting, after, answer: await kept.ask('b', await again.session()) };
    }, death);
    assert.equal(seen.dead[0], 'worker-lost');
    assert.match(seen.dead[1], /load the model again/);
    assert.equal(seen.waiting[0], 'worker-lost');
    assert.equal(seen.after, 'worker-lost');
    assert.deepEqual(seen.answer, ['b']);
  });
}

test('a worker that cannot start is an error', async () => {
  const fresh = await all.page();
  await fresh.context().route('**/package/worker.js', (route) => route.fulfill({ status: 404, body: '' }));
  const error = await failure(fresh, () => weft.Model.load('default'), undefined);
  assert.equal(error.code, 'worker-lost');
  await fresh.context().close();
});

test('a lost device rejects the running call; the next one works, with the tokens and adapters', async () => {
  const seen = await page.evaluate(async () => {
    const model = kept.model as Model;
    const chat = kept.chat as Session;
    const events: string[] = [];
    model.addEventListener('devicelost', ({ detail }) => events.push(`lost ${detail?.code}`));
    model.addEventListener('devicerestored', () => events.push('restored'));
    const adapter = await model.adapter([{ name: 'a.gguf', bytes: new Uint8Array(3) }]);
    await chat.setAdapters([{ adapter, scale: 2 }]);
    const trainer = await model.trainer({ data: '{}' });
    await kept.ask('a b c');
    const tokens = [...(await chat.tokens())];
    const lost = await kept.ask('lose').catch((error: { code: string }) => error.code);
    const answer = await kept.ask('d');
    const step: string[] = await trainer.step().then(() => [], (error) => [error.code, error.message]);
    return { events, tokens, lost, answer, now: [...(await chat.tokens())], step };
  });
  assert.deepEqual(seen.events, ['lost device-lost', 'restored']);
  assert.equal(seen.lost, 'device-lost');
  assert.deepEqual(seen.answer, ['d ', 'a.gguf:3*2']);
  assert.deepEqual(seen.now.slice(0, seen.tokens.length), seen.tokens);
  assert.equal(seen.step[0], 'device-lost');
  assert.match(seen.step[1] ?? '', /restore the last checkpoint/);
});

test('an adapter of another model is refused', async () => {
  const error = await failure(page, async () => {
    const other = await weft.Model.load('default');
    const adapter = await other.adapter([{ name: 'a.gguf', bytes: new Uint8Array(3) }]);
    await (kept.chat as Session).setAdapters([{ adapter }]);
  }, undefined);
  assert.equal(error.code, 'bad-options');
});

test('tokens, texts, prompts, logits and snapshots pass both ways', async () => {
  const seen = await page.evaluate(async () => {
    const [model, chat] = [kept.model as Model, kept.chat as Session];
    const ids = await model.tokenize('hi');
    await kept.ask('a b c');
    const snapshot = await chat.save();
    await chat.rollback(1);
    const short = (await chat.tokens()).length;
    await chat.load(snapshot);
    return {
      ids: [...ids], text: await model.detokenize(ids), prompt: await model.render([{ role: 'user', content: 'x' }]),
      logits: [...(await chat.logits([1, 2])).logits], short, long: (await chat.tokens()).length, snapshot: snapshot.length,
      devices: await weft.devices(), needs: await model.needs({ context: 5 }),
    };
  });
  assert.deepEqual(seen, {
    ids: [104, 105], text: 'hi', prompt: '<user>x', logits: [1, 2], short: 1, long: 3, snapshot: 3,
    devices: [{ name: 'fake', kind: 'cpu', fallback: false, maxBufferBytes: 1 }], needs: { weights: 100, kv: 5, intermediates: 1, total: 106 },
  });
});

test('the page of the README answers', async () => {
  const readme = await readFile(new URL('../../js/README.md', import.meta.url), 'utf8');
  const html = /```html\n([^]*?)```/.exec(readme)?.[1] ?? '';
  const { server } = all;
  await page.route('**/readme', (route) => route.fulfill({ contentType: 'text/html', body: html.replaceAll('./weft/', '/package/') }));
  await page.goto(`${server.url}readme`);
  await page.waitForFunction(() => document.querySelector('form')?.onsubmit);
  await page.getByRole('button', { name: 'Ask' }).click();
  await page.getByText('Where does Mira live?').waitFor();
});
