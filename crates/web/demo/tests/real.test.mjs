// The pages with the real engine and the default model: what canned answers cannot show.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { accessibility, ask, drop, hide, launch, serve, snapshot, visit } from './site.mjs';

const BUILD = 'dist';
const assets = await readdir(new URL(`../${BUILD}/assets/`, import.meta.url)).catch(() => []);
const asset = (pattern) => assets.find((name) => pattern.test(name));
if (!asset(/\.wasm$/)) {
  throw new Error('demo/dist is missing: run `cargo xtask web` first, or `npm run build` beside a built package');
}

let site, browser;
before(async () => ([site, browser] = await Promise.all([serve(undefined, BUILD), launch()])));
after(async () => {
  await browser?.close();
  await site?.close();
});

const press = (page, name) => page.getByRole('button', { name, exact: true }).click();
/** Waits for what the run tells. Other work may make the machine slow. */
const told = (page, hasText) => page.locator('.run-status', { hasText }).waitFor({ timeout: 60_000 });

async function choose(page, label, value) {
  await page.getByRole('spinbutton', { name: label, exact: true }).fill(value);
  await page.keyboard.press('Tab');
}

/** Makes the answers those of the most probable tokens. */
async function greedy(page) {
  await press(page, 'Settings');
  await choose(page, 'Temperature', '0');
  await page.keyboard.press('Escape');
}

/** How many tokens of the prompt the last answer did not evaluate. */
async function reused(page) {
  const facts = await page.locator('.turn.assistant').last().innerText();
  return Number(/(\d+) of \d+ prompt tokens reused/.exec(facts)?.[1] ?? 0);
}

test('what the first visit downloads is shown', async () => {
  const init = () => {
    globalThis.told = new Set();
    const look = () => globalThis.told.add(document.querySelector('.banner p')?.textContent);
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  };
  const { page, context, problems } = await visit(browser, site, { init });
  const texts = await page.evaluate(() => [...globalThis.told].join('\n'));
  assert.match(texts, /^Downloads the engine, \S+ [kM]B/m);
  assert.match(texts, /^Loads, \S+ [kM]B of \S+ MB/m);
  assert.deepEqual(problems, []);
  await context.close();
});

test('after one visit the page and the model answer without a network', async () => {
  const own = await serve(undefined, BUILD);
  const { page, context, problems } = await visit(browser, own);
  await greedy(page);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await context.setOffline(true);
  await own.close();
  await page.reload();
  await page.locator('.dot.ready').waitFor();
  assert.equal(await ask(page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  assert.deepEqual(problems, []);
  await context.close();
});

test('a tab that crashes, or is discarded, goes on with its session', async () => {
  const first = await visit(browser, site);
  const { context, problems } = first;
  await greedy(first.page);
  assert.equal(await ask(first.page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  assert.equal(await reused(first.page), 0);
  await snapshot(first.page);
  const crashed = first.page.waitForEvent('crash');
  const driver = await context.newCDPSession(first.page);
  driver.send('Page.crash').catch(() => {});
  await crashed;

  const second = await visit(browser, site, { context });
  await second.page.getByText('Mira lives in Bellwharf.', { exact: true }).first().waitFor();
  await ask(second.page, 'Tell me a story about Tobin.');
  // The question and its answer have about twenty tokens.
  assert.ok((await reused(second.page)) > 15, await second.page.locator('.turn').last().innerText());

  const before = Date.now();
  await hide(second.page);
  await snapshot(second.page, before - 1);
  await second.page.close();
  const third = await visit(browser, site, { context });
  assert.equal(await third.page.locator('.turn').count(), 4);
  await ask(third.page, 'Where does Mira live?');
  assert.ok((await reused(third.page)) > 60, await third.page.locator('.turn').last().innerText());
  assert.deepEqual([...problems, ...second.problems, ...third.problems], []);
  await context.close();
});

test('a run is stopped, goes on after a reload, and its adapter is downloaded and used', async () => {
  const { page, context, problems } = await visit(browser, site, { hash: '#teach' });
  const facts = await readFile(new URL('../../../../examples/facts.jsonl', import.meta.url), 'utf8');
  await page.getByLabel('Examples, one a line').fill(facts.split('\n').slice(0, 6).join('\n'));
  await page.locator('[role=status]', { hasText: '6 examples' }).waitFor();
  for (const [label, value] of [['Steps', '8'], ['Examples of a step', '1'], ['Held-out examples', '2']]) await choose(page, label, value);
  await press(page, 'Check');
  await page.locator('.examples mark', { hasText: 'Hanne lives in Kelm.' }).waitFor();
  assert.match(await page.locator('.teach .facts').innerText(), /In all\s+\d+ MB/);
  assert.match(await page.getByText('numbers are trained.').innerText(), /^4 examples .* 2 examples held out\. .* 8 steps in all/);
  await press(page, 'Start');
  await told(page, /Step [3-7] of 8/);
  await press(page, 'Stop');
  await told(page, 'Stopped after step');
  const losses = async () => {
    const rows = await page.locator('.loss tbody tr').evaluateAll((nodes) => nodes.map((row) => [...row.cells].map((cell) => cell.textContent)));
    return rows.map(([step, loss]) => `${step}: ${loss}`);
  };
  await page.getByText('As a table').click();
  const stopped = await losses();
  assert.ok(stopped.length >= 2 && stopped.length < 8, `${stopped.length} steps`);

  await page.reload();
  await page.locator('.dot.ready').waitFor();
  await page.getByText(`step ${stopped.length} of 8`).first().waitFor();
  await page.evaluate(() => {
    const line = document.querySelector('.run-status');
    globalThis.steps = [];
    const look = () => globalThis.steps.push(Number(/^Step (\d+) of/.exec(line.textContent)?.[1] ?? NaN));
    new MutationObserver(look).observe(line, { subtree: true, childList: true, characterData: true });
  });
  await press(page, 'Go on');
  await told(page, 'The run has ended.');
  await page.getByText('As a table').click();
  const all = await losses();
  assert.deepEqual(all.slice(0, stopped.length), stopped);
  // Steps of the checkpoint are not computed again: they would have the same losses.
  const computed = await page.evaluate(() => globalThis.steps.filter((step) => !Number.isNaN(step)));
  assert.equal(Math.min(...computed), stopped.length + 1);
  assert.deepEqual(all.map((row) => Number(row.split(':')[0])), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.match(await page.locator('.run-status').innerText(), /held-out loss \d/);

  for (const [name, start] of [['Download as PEFT', 'PK'], ['Download as GGUF', 'GGUF']]) {
    const [file] = await Promise.all([page.waitForEvent('download'), press(page, name)]);
    const bytes = await readFile(await file.path());
    assert.equal(bytes.subarray(0, start.length).toString(), start);
    assert.ok(bytes.length > 100_000, `${name}: ${bytes.length} bytes`);
  }
  await press(page, 'Use in Chat');
  await press(page, 'Open Chat');
  assert.match(await ask(page, 'Who lives in Kelm?'), /\w/);
  assert.deepEqual(problems, []);
  await context.close();
});

test('chat and comparing take turns with a run', async () => {
  const { page, context, problems } = await visit(browser, site, { hash: '#teach' });
  await press(page, 'Use 20 facts');
  await choose(page, 'Examples of a step', '1');
  await press(page, 'Start');
  await told(page, /Step [2-9] of/);
  await page.getByLabel('Question to compare').fill('Who lives in Kelm?');
  await page.keyboard.press('Enter');
  for (const name of ['Without the adapter', 'With the adapter']) {
    await page.getByRole('region', { name }).locator('.markdown', { hasText: /\w/ }).waitFor();
  }
  await page.getByRole('link', { name: 'Chat' }).click();
  assert.match(await ask(page, 'Where does Mira live?'), /\w/);
  await page.getByRole('link', { name: 'Teach' }).click();
  assert.ok(await page.getByRole('button', { name: 'Stop', exact: true }).isVisible(), 'the run has ended');
  await press(page, 'Stop');
  await told(page, 'Stopped after step');
  assert.deepEqual(problems, []);
  await context.close();
});

test('a conversation of one tab is in the list of another', async () => {
  const one = await visit(browser, site);
  const other = await visit(browser, site, { context: one.context });
  await one.page.getByRole('button', { name: 'New chat' }).click();
  await ask(one.page, 'What is 17 + 25?');
  await other.page.locator('.conversations li', { hasText: 'What is 17 + 25?' }).waitFor();
  assert.deepEqual([...one.problems, ...other.problems], []);
  await one.context.close();
});

test('wrong files and lines are a sentence with the way out, and the page goes on', async () => {
  const { page, context, problems } = await visit(browser, site);
  const whole = await readFile(new URL(`../${BUILD}/assets/${asset(/\.gguf$/)}`, import.meta.url));
  for (const [name, content, sentence] of [
    ['page.gguf', '<!doctype html><p>Log in</p>', 'choose a file whose name ends with .gguf.'],
    ['cut.gguf', [...whole.subarray(0, 300_000)], 'the file is cut short; get the file again, or choose another one.'],
    ['header.gguf', [...whole.subarray(0, 200)], 'the file is damaged; get the file again, or choose another one.'],
    ['notes.txt', 'hello', 'notes.txt is no GGUF file: it begins with "hell"; choose a file'],
    ['empty.gguf', '', 'empty.gguf is no GGUF file: it is empty; choose a file'],
  ]) {
    await drop(page, 'main', [[name, content]]);
    await page.locator('.banner', { hasText: sentence }).waitFor();
    await press(page, 'Back to Default model');
    await page.locator('.dot.ready').waitFor();
  }
  await page.locator('.model-button').click();
  await page.getByLabel('Address').fill(`${site.url}nothing.gguf`);
  await page.keyboard.press('Enter');
  await page.locator('.banner', { hasText: 'nothing.gguf: the server answered 404: there is no such file; check the address.' }).waitFor();
  await press(page, 'Back to Default model');
  await page.locator('.dot.ready').waitFor();
  await drop(page, 'main', [['adapter_model.safetensors', 'junk']]);
  await page.locator('.notice', { hasText: 'Not an adapter' }).waitFor();

  await page.getByRole('link', { name: 'Teach' }).click();
  await page.getByLabel('Examples, one a line').fill('{"prompt": "a", "completion": "b"}\n\n{"prompt": "c", "completion": ""}');
  await page.locator('[role=status]', { hasText: '2 examples' }).waitFor();
  await press(page, 'Check');
  await page.locator('.line-errors li', { hasText: 'Line 3: Nothing to learn: the completion is empty.' }).waitFor();
  await page.getByRole('link', { name: 'Chat' }).click();
  assert.match(await ask(page, 'Where does Mira live?'), /\w/);
  assert.deepEqual(problems, []);
  await context.close();
});

/** What Firefox, Safari and their older versions lack, in the page and in the worker. */
const LACKS = `
  delete globalThis.showOpenFilePicker;
  for (const name of ['createSyncAccessHandle', 'createWritable']) delete FileSystemFileHandle.prototype[name];
  for (const name of ['persist', 'persisted', 'estimate']) delete StorageManager.prototype[name];
  for (const scope of [globalThis.Navigator, globalThis.WorkerNavigator]) delete scope?.prototype.gpu;
`;

test('a browser without WebGPU, handles of files, persistence and a quota loads, answers and keeps', async () => {
  const name = `assets/${asset(/^worker-.*\.js$/)}`;
  const worker = await readFile(new URL(`../${BUILD}/${name}`, import.meta.url), 'utf8');
  const own = await serve(new Map([[name, LACKS + worker]]), BUILD);
  const { page, context, problems } = await visit(browser, own, { init: LACKS });
  await page.locator('.model-button').click();
  await page.getByLabel('Address').fill(`${own.url}assets/${asset(/\.gguf$/)}`);
  await page.keyboard.press('Enter');
  await page.locator('.model-button', { hasText: 'default-' }).locator('.dot.ready').waitFor();
  await page.locator('.notice', { hasText: 'The file was not kept for the next time' }).waitFor();
  await page.locator('.model-button').click();
  await page.getByRole('region', { name: 'To download' }).waitFor();
  assert.deepEqual(await page.locator('.notice.bad').allInnerTexts(), []);
  await page.keyboard.press('Escape');
  await ask(page, 'Where does Mira live?');
  await hide(page);
  await snapshot(page);
  await page.reload();
  await page.locator('.dot.ready').waitFor();
  await ask(page, 'Where does Tobin live?');
  assert.ok((await reused(page)) > 15, await page.locator('.turn').last().innerText());
  assert.deepEqual(problems, []);
  await context.close();
  await own.close();
});

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing on both pages: ${colorScheme}`, async () => {
    const { page, context, problems } = await visit(browser, site, { colorScheme });
    await ask(page, 'Where does Mira live?');
    assert.deepEqual(await accessibility(page), []);
    await page.getByRole('link', { name: 'Teach' }).click();
    await press(page, 'Use 20 facts');
    await press(page, 'Check');
    await page.locator('.examples mark', { hasText: 'Hanne' }).waitFor();
    assert.deepEqual(await accessibility(page), []);
    assert.deepEqual(problems, []);
    await context.close();
  });
}
