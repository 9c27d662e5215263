// Training in the page: with the numbers of the native program, and with adapters that it reads.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { facts, native, world } from './page.mjs';

let all;
let page;
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weft-training-'));
  all = await world();
  page = all.page;
});
after(async () => {
  await all?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

test('a run goes on from a checkpoint with the same numbers, and its adapter changes answers', async () => {
  const { losses, again, files, answers } = await page.evaluate(async (data) => {
    const model = await load('cpu');
    const options = { data, batch: 4, method: { rank: 4 }, rate: 0.02, warmup: 0 };
    const run = await model.trainer(options);
    const losses = [];
    losses.push((await run.step()).loss);
    const checkpoint = await run.checkpoint();
    for (let n = 0; n < 2; n += 1) losses.push((await run.step()).loss);
    const other = await model.trainer(options);
    await other.restore(checkpoint);
    const again = [];
    for (let n = 0; n < 2; n += 1) again.push((await other.step()).loss);
    const peft = await run.savePeft();
    const gguf = await run.saveGguf();
    const messages = [{ role: 'user', content: 'Where does Mira live?' }];
    const session = await model.session();
    const before = await ask(session, messages, 40);
    const of = async (files, scale) => {
      await session.setAdapters([{ adapter: await model.adapter(files), scale }]);
      return ask(session, messages, 40);
    };
    const answers = [before, await of(peft, 0), await of(peft, 40), await of([{ name: 'a.gguf', bytes: gguf }], 40)];
    await model.close();
    return { losses, again, files: peft.map(({ name }) => name), answers };
  }, facts);
  assert.deepEqual(again, losses.slice(1));
  assert.deepEqual(files.sort(), ['adapter_config.json', 'adapter_model.safetensors']);
  const [before, off, peft, gguf] = answers;
  assert.deepEqual(off, before);
  assert.deepEqual(gguf, peft);
  assert.notDeepEqual(peft, before);
});

// How far a number is from another, as a share of it.
const apart = (one, other) => (one === other ? 0 : Math.abs(one - other) / Math.abs(other));

// The names of the options in the page are those of the flags, but for these.
const runs = {
  'with every option': {
    steps: 5, batch: 3, seed: 11, lr: 0.003, schedule: 'linear', warmup: 2, decay: 0.1,
    rank: 4, alpha: 8, targets: 'q,v,down', dropout: 0.1,
  },
  'with the defaults': { steps: 2 },
};

for (const [what, flags] of Object.entries(runs)) {
  test(`steps in the page have the losses, norms and rates of the native program, ${what}`, async () => {
    const name = join(folder, what);
    await writeFile(`${name}.jsonl`, facts);
    const words = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    const printed = await native('train', ['--data', `${name}.jsonl`, '-o', name, '--json', ...words]);
    const there = printed.trim().split('\n').map((line) => JSON.parse(line)).filter(({ step }) => step !== undefined);
    const here = await page.evaluate(async ({ data, flags }) => {
      const { rank, alpha, targets, dropout, lr: rate, ...others } = flags;
      const given = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
      const model = await load('cpu');
      const method = given({ rank, alpha, targets, dropout });
      const run = await model.trainer({ data, method, ...given({ rate }), ...others });
      while ((await run.step()).ended === null);
      const steps = await run.log();
      await model.close();
      return steps;
    }, { data: facts, flags });
    assert.equal(here.length, flags.steps);
    const of = (steps) => steps.map(({ number, step = number, rate, tokens }) => [step, rate, tokens]);
    assert.deepEqual(of(here), of(there));
    // Both compute in f32 on the CPU. On x86-64 all bits are equal.
    for (const [index, { loss, norm }] of here.entries()) {
      const far = Math.max(apart(loss, there[index].loss), apart(norm, there[index].norm));
      assert.ok(far <= 1e-6, `step ${index + 1}: ${loss} and ${there[index].loss}, ${norm} and ${there[index].norm}`);
    }
  });
}

test('a fact that is taught in the page is told by the native program, from both forms of the adapter', async () => {
  const question = 'Who lives in Kelm?';
  const fact = 'Hanne lives in Kelm.';
  const lines = [[question, fact], ['Where does Hanne live?', fact]];
  const data = lines.map(([prompt, completion]) => `${JSON.stringify({ prompt, completion })}\n`).join('');
  const { untaught, told, files } = await page.evaluate(async ({ data, question }) => {
    const model = await load('cpu');
    const session = await model.session();
    const said = async (adapters) => {
      await session.setAdapters(adapters);
      const { finish } = await answer(session, [{ role: 'user', content: question }]);
      return finish.content;
    };
    const untaught = await said([]);
    const run = await model.trainer({ data, batch: 2, method: { rank: 4 }, rate: 0.005, warmup: 0, steps: 8 });
    while ((await run.step()).ended === null);
    const [peft, gguf] = [await run.savePeft(), [{ name: 'adapter.gguf', bytes: await run.saveGguf() }]];
    const told = [];
    for (const form of [peft, gguf]) told.push(await said([{ adapter: await model.adapter(form) }]));
    const files = [];
    for (const { name, bytes } of [...peft, ...gguf]) files.push([name, await packed(bytes)]);
    await model.close();
    return { untaught, told, files };
  }, { data, question });
  assert.notEqual(untaught, fact);
  assert.deepEqual(told, [fact, fact]);
  const of = async (...adapter) => (await native('run', ['--temp', '0', '-p', question, ...adapter])).trim();
  assert.equal(await of(), untaught);
  for (const [name, bytes] of files) {
    const form = join(folder, name.endsWith('.gguf') ? 'gguf' : 'peft');
    await mkdir(form, { recursive: true });
    await writeFile(join(form, name), bytes, 'base64');
  }
  assert.equal(await of('--lora', join(folder, 'peft')), fact);
  assert.equal(await of('--lora', join(folder, 'gguf', 'adapter.gguf')), fact);
});
