// The package with its real engine: answers, cancelling, snapshots and training in Chromium.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { WEBGPU, servePackage } from './package-server.mjs';

const asset = (name) => readFile(new URL(`../../cli/assets/${name}`, import.meta.url), 'utf8');
const facts = await readFile(new URL('../../../examples/facts.jsonl', import.meta.url), 'utf8');
const greedy = JSON.parse(await asset('default-greedy.json'));
let server;
let browser;
let page;

before(async () => {
  server = await servePackage();
  browser = await chromium.launch({ executablePath: process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium', args: WEBGPU });
  page = await browser.newPage();
  await page.goto(server.url);
  // Every function below runs in the page, where `weft` is the package and `load` a model.
  await page.evaluate(async () => {
    globalThis.weft = await import('/package/index.js');
    globalThis.load = (device) => weft.Model.load('default', { device });
    globalThis.ask = async (session, messages, maxTokens) => {
      const ids = [];
      const sampling = { temperature: 0 };
      for await (const { id } of session.send(messages, { sampling, maxTokens })) ids.push(id);
      return ids;
    };
  });
});
after(async () => {
  await browser?.close();
  server?.close();
});

test('the CPU executor gives the greedy answers of the default model', async () => {
  const answers = await page.evaluate(async (questions) => {
    const model = await load('cpu');
    const session = await model.session({ context: 512 });
    const answers = [];
    for (const messages of questions) answers.push(await ask(session, messages, 200));
    await model.close();
    return answers;
  }, greedy.map(({ messages }) => messages));
  assert.deepEqual(answers, greedy.map(({ reply_ids }) => reply_ids));
});

test('WebGPU gives the same answer, and a closed model leaves no buffer', { timeout: 300_000 }, async () => {
  const [first] = greedy;
  const { executor, ids, live } = await page.evaluate(async (messages) => {
    const model = await load('gpu');
    const { executor } = model.info;
    const session = await model.session({ context: 512 });
    const ids = await ask(session, messages, 200);
    await model.close();
    const idle = await load('cpu');
    const live = await idle.memory();
    await idle.close();
    return { executor, ids, live };
  }, first.messages);
  assert.equal(executor, 'gpu');
  assert.deepEqual(ids, first.reply_ids);
  assert.equal(live.buffers, 0, `${live.gpu} bytes stay`);
});

test('an answer and a step of training stop within 100 ms, and the page stands still for no longer', async () => {
  const { answer, step, worst } = await page.evaluate(async (data) => {
    let worst = 0;
    let last = performance.now();
    const tick = setInterval(() => {
      worst = Math.max(worst, performance.now() - last);
      last = performance.now();
    }, 5);
    // The time from the cancel to the end of the call.
    const stopped = async (run) => {
      const controller = new AbortController();
      const running = run(controller.signal).catch((error) => error.code);
      await new Promise((resolve) => setTimeout(resolve, 300));
      const from = performance.now();
      controller.abort();
      return { code: await running, ms: performance.now() - from };
    };
    const model = await load('cpu');
    const session = await model.session();
    const long = [{ role: 'user', content: 'where '.repeat(900) }];
    const answer = await stopped(async (signal) => {
      for await (const _ of session.send(long, { signal })) void _;
      return session.finish.reason;
    });
    const trainer = await model.trainer({ data });
    const step = await stopped((signal) => trainer.step({ signal }));
    clearInterval(tick);
    await model.close();
    return { answer, step, worst };
  }, facts);
  assert.equal(answer.code, 'cancelled');
  assert.equal(step.code, 'aborted');
  assert.ok(answer.ms < 100 && step.ms < 100, `${answer.ms} and ${step.ms} ms`);
  assert.ok(worst < 100, `${worst} ms`);
});

test('a snapshot goes on as the session that made it', async () => {
  const { here, there } = await page.evaluate(async ({ messages }) => {
    const model = await load('cpu');
    const first = await model.session();
    const asked = [messages[0]];
    const reply = await ask(first, asked, 200);
    const more = [...asked, first.finish.message, { role: 'user', content: 'And who is that?' }];
    const bytes = await first.save();
    const here = await ask(first, more, 40);
    const second = await model.session();
    await second.load(bytes);
    const there = await ask(second, more, 40);
    const again = second.finish.evaluatedTokens < second.finish.promptTokens;
    await model.close();
    return { here, there: again && reply.length > 0 ? there : [] };
  }, greedy[0]);
  assert.deepEqual(there, here);
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
