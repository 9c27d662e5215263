// Answers on the CPU: the right ones, and their end when they are cancelled.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { facts, greedy, world } from './page.mjs';

let all;
let page;

before(async () => {
  all = await world();
  page = all.page;
});
after(() => all?.close());

test('the CPU executor gives the greedy answers of the default model', async () => {
  const answers = await page.evaluate(async (questions) => {
    const model = await load('cpu');
    const session = await model.session({ context: 512 });
    const answers = [];
    for (const messages of questions) answers.push(await ask(session, messages));
    await model.close();
    return answers;
  }, greedy.map(({ messages }) => messages));
  assert.deepEqual(answers, greedy.map(({ reply_ids }) => reply_ids));
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
