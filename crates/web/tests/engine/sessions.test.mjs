// Snapshots of conversations: within the page, and between the page and the native program.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { greedy, isRefusal, native, world } from './page.mjs';

let all;
let page;
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weft-sessions-'));
  all = await world();
  page = all.page;
});
after(async () => {
  await all?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

const [{ messages: asked, prompt_ids: prompt, reply, reply_ids: replied }] = greedy;
const second = { role: 'user', content: 'And who lives in Gullhaven?' };
const more = [...asked, { role: 'assistant', content: reply }, second];

test('a snapshot goes on as the session that made it', async () => {
  const { here, there } = await page.evaluate(async ({ asked, more }) => {
    const model = await load('cpu');
    const first = await model.session();
    await ask(first, asked);
    const bytes = await first.save();
    const here = await answer(first, more);
    const other = await model.session();
    await other.load(bytes);
    const there = await answer(other, more);
    await model.close();
    return { here, there };
  }, { asked, more });
  assert.ok(here.ids.length > 2);
  assert.deepEqual(there.ids, here.ids);
  assert.deepEqual(there.logProbs, here.logProbs);
  assert.equal(there.finish.evaluatedTokens, here.finish.evaluatedTokens);
});

// The native program goes on from a snapshot: its JSON.
async function goesOn(snapshot, text, kv, form) {
  const words = [...form, '--load-session', snapshot, '--kv', kv, '--temp', '0', '--json', '-p', text];
  return JSON.parse(await native('run', words));
}

// The answers of the page and of the native program have the same ids, and their probabilities.
function isSame(told, { ids, logProbs, finish }) {
  assert.ok(ids.length > 2);
  assert.deepEqual(told.tokens, ids);
  assert.equal(told.text, finish.content);
  assert.equal(told.prompt_tokens, finish.promptTokens);
  for (const [index, logProb] of logProbs.entries()) {
    const difference = Math.abs(told.log_probs[index] - logProb);
    assert.ok(difference < 1e-5, `token ${index}: ${told.log_probs[index]} and ${logProb}`);
  }
}

for (const kv of ['f16', 'q8_0', 'f32']) {
  test(`the native program goes on from a snapshot of the page (${kv})`, async () => {
    const { bytes, tokens, rest, told } = await page.evaluate(async ({ asked, more, kv }) => {
      const model = await load('cpu');
      const session = await model.session({ kv });
      await ask(session, asked);
      const bytes = await packed(await session.save());
      const tokens = [...(await session.tokens())];
      const rest = (await model.render(more)).slice((await model.detokenize(tokens)).length);
      const told = await answer(session, more);
      await model.close();
      return { bytes, tokens, rest, told };
    }, { asked, more, kv });
    assert.deepEqual(tokens, [...prompt, ...replied]);
    const snapshot = join(folder, `page-${kv}`);
    await writeFile(snapshot, bytes, 'base64');
    isSame(await goesOn(snapshot, rest, kv, ['--raw']), told);
  });

  test(`the page goes on from a snapshot of the native program (${kv})`, async () => {
    const snapshot = join(folder, `native-${kv}`);
    await native('run', ['--save-session', snapshot, '--kv', kv, '--temp', '0', '-p', asked[0].content]);
    const { tokens, told } = await page.evaluate(async ({ file, more, kv }) => {
      const model = await load('cpu');
      const session = await model.session({ kv });
      await session.load(await unpacked(file));
      const tokens = [...(await session.tokens())];
      const told = await answer(session, more);
      await model.close();
      return { tokens, told };
    }, { file: await readFile(snapshot, 'base64'), more, kv });
    assert.deepEqual(tokens, [...prompt, ...replied]);
    assert.ok(told.finish.evaluatedTokens <= told.finish.promptTokens - tokens.length + 1, 'the cache is used');
    isSame(await goesOn(snapshot, second.content, kv, []), told);
  });
}

test('a snapshot that does not fit is refused in a sentence, and the session goes on', async () => {
  const { refusals, ids } = await page.evaluate(async (asked) => {
    const model = await load('cpu');
    const session = await model.session({ kv: 'q8_0' });
    await ask(session, asked);
    const bytes = await session.save();
    const damaged = bytes.slice();
    damaged[bytes.length - 100] ^= 1;
    const wide = await model.session({ kv: 'f32' });
    const refusals = [
      await failed(() => session.load(bytes.slice(0, bytes.length >> 1))),
      await failed(() => session.load(damaged)),
      await failed(() => session.load(new TextEncoder().encode('no snapshot at all'))),
      await failed(() => wide.load(bytes)),
    ];
    const ids = await ask(session, asked);
    await model.close();
    return { refusals, ids };
  }, asked);
  for (const refusal of refusals) isRefusal(refusal, 'snapshot', /saved|snapshot/);
  assert.deepEqual(ids, replied);
});
