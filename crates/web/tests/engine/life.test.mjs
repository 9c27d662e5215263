// The life of models: loads and closes, and GPUs that are lost or not there.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WEBGPU } from '../package-server.mjs';
import { greedy, isRefusal, world } from './page.mjs';

// Runs a test with a browser of its own.
async function within(options, work) {
  const all = await world(options);
  try {
    await work(all);
  } finally {
    await all.close();
  }
}

const [{ messages: asked, prompt_ids: prompt, reply, reply_ids: replied }] = greedy;
const second = { role: 'user', content: 'And who lives in Gullhaven?' };
const more = [...asked, { role: 'assistant', content: reply }, second];

const MEGABYTE = 1 << 20;

test('50 loads and 200 answers leave no buffer, and no memory behind', async () => {
  await within({}, async ({ page }) => {
    const { before, after, wrong } = await page.evaluate(async () => {
      const question = [{ role: 'user', content: 'Hi' }];
      let wrong = 0;
      let right;
      const live = async (count) => {
        for (let n = 0; n < count; n += 1) {
          const model = await load('cpu');
          const session = await model.session();
          for (let m = 0; m < 4; m += 1) {
            const ids = String(await ask(session, question, 2));
            right ??= ids;
            if (ids !== right) wrong += 1;
          }
          await model.close();
        }
        const idle = await load('cpu');
        const memory = await idle.memory();
        await idle.close();
        return memory;
      };
      const before = await live(3);
      return { before, after: await live(50), wrong };
    });
    assert.equal(wrong, 0);
    assert.equal(after.buffers, before.buffers);
    assert.equal(after.gpu, before.gpu);
    assert.ok(after.wasm - before.wasm <= 4 * MEGABYTE, `${before.wasm} bytes became ${after.wasm}`);
  });
});

// Lets a page destroy the newest device of its worker.
const DESTROYS = `
  const made = [];
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (...options) {
    made.push(await requestDevice.apply(this, options));
    return made.at(-1);
  };
  new BroadcastChannel('destroy').onmessage = () => made.at(-1).destroy();
`;

// SwiftShader compiles the kernels of each device anew when they answer, in half a minute.
test('WebGPU answers as the CPU, also after its device was lost, and leaves no buffer', { timeout: 300_000 }, async () => {
  await within({ args: WEBGPU }, async (all) => {
    all.hook = DESTROYS;
    const page = await all.open();
    const first = await page.evaluate(async ({ asked, more }) => {
      const cpu = await load('cpu');
      const expected = await ask(await cpu.session(), more);
      await cpu.close();
      globalThis.events = [];
      globalThis.model = await load('gpu');
      model.addEventListener('devicelost', ({ detail }) => events.push(['lost', detail?.code]));
      model.addEventListener('devicerestored', () => events.push(['restored']));
      globalThis.session = await model.session({ context: 512 });
      return { expected, executor: model.info.executor, ids: await ask(session, asked) };
    }, { asked, more });
    assert.equal(first.executor, 'gpu');
    assert.deepEqual(first.ids, replied);

    // The process of the GPU dies in the middle of a prompt.
    const crash = async () => {
      await page.waitForFunction(() => globalThis.isRunning);
      await (await all.browser.newBrowserCDPSession()).send('Browser.crashGpuProcess');
    };
    const run = page.evaluate(async () => {
      const other = await model.session({ context: 512 });
      setTimeout(() => (globalThis.isRunning = true), 1000);
      const refusal = await failed(() => answer(other, [{ role: 'user', content: 'where '.repeat(400) }]));
      await other.close();
      return refusal;
    });
    const [refusal] = await Promise.all([run, crash()]);
    isRefusal(refusal, 'device-lost');
    // The device goes while nothing runs: the page is told, and the model comes back by itself. The
    // session that did nothing keeps its tokens.
    const again = await page.evaluate(async (more) => {
      await model.needs();
      const restored = events.splice(0);
      new BroadcastChannel('destroy').postMessage('now');
      while (events.length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
      const tokens = [...(await session.tokens())];
      const ids = await ask(session, more);
      await model.close();
      const idle = await load('cpu');
      const live = await idle.memory();
      await idle.close();
      return { restored, tokens, ids, events, live };
    }, more);
    assert.deepEqual(again.restored, [['lost', 'device-lost'], ['restored']]);
    assert.deepEqual(again.events, [['lost', undefined], ['restored']]);
    assert.deepEqual(again.tokens, [...prompt, ...replied]);
    assert.deepEqual(again.ids, first.expected);
    assert.equal(again.live.buffers, 0, `${again.live.gpu} bytes stay`);
  });
});

const without = {
  'a browser without an adapter': '',
  'a browser without navigator.gpu': 'delete WorkerNavigator.prototype.gpu;',
};

for (const [what, hook] of Object.entries(without)) {
  test(`${what} has the CPU, and says so of a GPU`, async () => {
    await within({}, async (all) => {
      all.hook = hook;
      const page = await all.open();
      const { executor, ids, refusal, kinds, again } = await page.evaluate(async (asked) => {
        const model = await load('auto');
        const ids = await ask(await model.session(), asked);
        const refusal = await failed(() => load('gpu'));
        const kinds = (await weft.devices()).map(({ kind }) => kind);
        const again = await ask(await model.session(), asked);
        await model.close();
        return { executor: model.info.executor, ids, refusal, kinds, again };
      }, asked);
      assert.equal(executor, 'cpu');
      assert.deepEqual(kinds, ['cpu']);
      assert.deepEqual([ids, again], [replied, replied]);
      isRefusal(refusal, 'no-webgpu', /use the CPU/);
    });
  });
}
