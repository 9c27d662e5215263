// Batches, taps, and training that goes on from an adapter, with the real engine.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { facts, isRefusal, world } from './page.mjs';

let browser;
before(async () => (browser = await world()));
after(() => browser.close());

test('every sequence of a batch gets what a session of its own gets', async () => {
  const { alone, together, out } = await browser.page.evaluate(async () => {
    const model = await load('cpu');
    const texts = ['Mira lives in', 'Who lives in Kelm?', 'Zelda has'];
    const prompts = await Promise.all(texts.map((text) => model.tokenize(text)));
    const greedy = { temperature: 0 };
    const alone = [];
    const session = await model.session({ context: 64 });
    for (const text of texts) {
      const ids = [];
      for await (const { id } of session.complete(text, { sampling: greedy, maxTokens: 6 })) ids.push(id);
      alone.push(ids);
    }
    const batch = await model.batch({ sequences: 3, context: 64 });
    const together = [[], [], []];
    for (const [n, ids] of prompts.entries()) await batch.feed(n, ids);
    for (let step = 0; step < 6; step += 1) {
      for (const { sequence, id } of await batch.step(greedy)) together[sequence].push(id);
    }
    await batch.release(1);
    const left = (await batch.step([greedy])).map(({ sequence }) => sequence);
    const out = { left, released: (await batch.tokens(1)).length, sequences: batch.sequences, error: await failed(() => batch.feed(3, [1])), shift: await failed(() => model.batch({ sequences: 2, shift: 4 })) };
    await model.close();
    return { alone, together, out };
  });
  // A session does not give the token that ends a text; a batch knows no end.
  for (const [n, ids] of alone.entries()) assert.deepEqual(together[n].slice(0, ids.length), ids);
  assert.ok(alone.some((ids) => ids.length > 3));
  assert.deepEqual([out.left, out.released, out.sequences], [[0, 2], 0, 3]);
  isRefusal(out.error, 'bad-options', /numbered from 0/);
  isRefusal(out.shift, 'bad-options', /a batch has none/);
});

test('taps give inner values beside the logits, and an unknown one is refused with those that there are', async () => {
  const { names, taps, same, error } = await browser.page.evaluate(async () => {
    const model = await load('cpu');
    const names = await model.taps();
    const ids = await model.tokenize('Mira lives in Bellwharf.');
    const tapped = await (await model.session({ taps: ['layer_out', 'embed'] })).logits(ids);
    const plain = await (await model.session()).logits(ids);
    const shape = ({ name, layer, values }) => ({ name, layer, width: values.length / ids.length, finite: values.every(Number.isFinite) });
    const error = await failed(() => model.session({ taps: ['no_such_tap'] }));
    const same = plain.taps.length === 0 && plain.logits.every((logit, n) => logit === tapped.logits[n]);
    const layers = model.info.layers;
    await model.close();
    return { names, taps: { list: tapped.taps.map(shape), layers }, same, error };
  });
  assert.ok(names.includes('layer_out') && names.includes('attn_k_rope'), names);
  const [embed, ...layers] = taps.list;
  assert.equal(embed.name, 'embed');
  assert.deepEqual(layers.map(({ name, layer }) => `${name} ${layer}`), Array.from({ length: taps.layers }, (_, n) => `layer_out ${n}`));
  assert.ok(taps.list.every(({ width, finite }) => finite && width === embed.width && width > 8));
  assert.ok(same);
  isRefusal(error, 'bad-options', /it names .*layer_out/);
});

test('a run goes on from an adapter', async () => {
  const { last, first, whole, both } = await browser.page.evaluate(async (data) => {
    const model = await load('cpu');
    const options = { data, batch: 5, rate: 0.01, schedule: 'constant', warmup: 0, shuffle: false, clip: 0 };
    const run = await model.trainer({ ...options, method: { rank: 4 } });
    for (let step = 0; step < 3; step += 1) await run.step();
    const last = (await run.evaluate(data)).loss;
    const from = async (files) => {
      const next = await model.trainer({ ...options, method: { init: files } });
      return { loss: (await next.step()).loss, clip: next.facts.options.clip, notes: next.facts.notes };
    };
    const first = [await from(await run.savePeft()), await from([{ name: 'a.gguf', bytes: await run.saveGguf() }])];
    const whole = await failed(() => model.trainer({ ...options, betas: [0.9, 1] }));
    const both = await failed(async () => model.trainer({ ...options, method: { rank: 8, init: await run.savePeft() } }));
    await model.close();
    return { last, first, whole, both };
  }, facts.split('\n').slice(0, 5).join('\n'));
  for (const { loss, clip, notes } of first) {
    assert.ok(Math.abs(loss - last) < 1e-6 * last, `${loss} instead of ${last}`);
    assert.deepEqual([clip, notes], [0, []]);
  }
  isRefusal(whole, 'bad-options', /betas/);
  isRefusal(both, 'bad-options', /method\.rank/);
});
