// The view Teach with a canned loss.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ask, launch, serve, visit } from './site.mjs';

let site, browser;
before(async () => ([site, browser] = await Promise.all([serve(), launch()])));
after(async () => {
  await browser?.close();
  await site?.close();
});

function page(name, run, mock = '') {
  test(name, async () => {
    const visited = await visit(browser, site, { hash: '#teach', mock });
    await run(visited);
    assert.deepEqual(visited.problems, []);
    await visited.context.close();
  });
}

const press = (page, name) => page.getByRole('button', { name, exact: true }).click();
const status = (page, hasText) => page.locator('.run-status', { hasText });
const stepOf = async (page) => Number(/step (\d+)/.exec(await page.locator('.run-status').innerText())[1]);

async function choose(page, label, value) {
  await page.getByRole('spinbutton', { name: label, exact: true }).fill(value);
  await page.keyboard.press('Tab');
}

page('bad lines are named, and a press goes to the line', async ({ page }) => {
  const data = page.getByLabel('Examples, one a line');
  await data.fill('{"prompt": "a", "completion": "b"}\nnonsense\n{"prompt": "c"}\n{"x": 1}');
  const errors = page.locator('.line-errors li');
  await errors.nth(2).waitFor();
  assert.match(await errors.nth(0).innerText(), /^Line 2 is not JSON/);
  assert.equal(await errors.nth(1).innerText(), 'Line 3 has "prompt" without "completion"');
  assert.match(await errors.nth(2).innerText(), /^Line 4 has none of these keys/);
  assert.equal(await page.getByRole('button', { name: 'Start' }).isDisabled(), true);
  await press(page, 'Line 2');
  assert.equal(await data.evaluate((node) => node.value.slice(node.selectionStart, node.selectionEnd)), 'nonsense');
});

page('a line that the engine refuses is named by its place in the file', async ({ page }) => {
  await page
    .getByLabel('Examples, one a line')
    .fill('\n{"prompt": "a", "completion": "b"}\n\n{"prompt": "c", "completion": ""}');
  await page.locator('[role=status]', { hasText: '2 examples' }).waitFor();
  await press(page, 'Start');
  await page.locator('.line-errors li', { hasText: 'Line 4: Nothing to learn: the completion is empty.' }).waitFor();
  await page.getByRole('alert').filter({ hasText: 'Line 4: Nothing to learn' }).waitFor();
});

page('a held-out line that the engine refuses is named by its place, too', async ({ page }) => {
  const lines = Array(4).fill('{"prompt": "a", "completion": "b"}');
  lines[1] = '{"prompt": "c", "completion": ""}';
  await page.getByLabel('Examples, one a line').fill(lines.join('\n'));
  await choose(page, 'Held-out examples', '2');
  await press(page, 'Start');
  await page.locator('.line-errors li', { hasText: 'Line 2: Nothing to learn' }).waitFor();
});

page('an example that is left out is told', async ({ page }) => {
  const long = JSON.stringify({ prompt: 'word '.repeat(2000), completion: 'x' });
  await page.getByLabel('Examples, one a line').fill(`{"prompt": "a", "completion": "b"}\n${long}`);
  await press(page, 'Check');
  await page.getByText('1 example left out: too long, or with nothing to learn.').waitFor();
});

page('checks, and shows defaults, memory and what is learnt', async ({ page }) => {
  await press(page, 'Use 20 facts');
  await press(page, 'Check');
  await page.getByRole('heading', { name: 'What will be learnt' }).waitFor();
  assert.equal(await page.locator('.examples mark').nth(1).innerText(), 'Hanne lives in Kelm.<|im_end|>');
  assert.match(await page.locator('.teach .facts').innerText(), /In all\s+30 MB/);
  await page.getByText('More settings').click();
  assert.equal(await page.getByRole('spinbutton', { name: 'Rank', exact: true }).getAttribute('placeholder'), '16');
  assert.equal(await page.getByRole('spinbutton', { name: 'Steps', exact: true }).getAttribute('placeholder'), '90');
  await choose(page, 'Rate', '-1');
  await page.getByRole('alert').filter({ hasText: 'A number from 0' }).waitFor();
});

page('stops, and goes on after a reload', async ({ page, context, problems }) => {
  await press(page, 'Use 20 facts');
  await choose(page, 'Held-out examples', '4');
  await press(page, 'Start');
  await status(page, /Step 1\d of 60/).waitFor();
  await press(page, 'Stop');
  await status(page, 'Stopped').waitFor();
  const stopped = await stepOf(page);
  assert.match(
    await page.locator('svg.chart').getAttribute('aria-label'),
    /Loss by step\. Loss .* at step 1, .*held-out loss/,
  );

  await page.close();
  const visited = await visit(browser, site, { context, hash: '#teach' });
  const again = visited.page;
  await again.getByText(`step ${stopped} of 60`).first().waitFor();
  await press(again, 'Go on');
  await status(again, 'The run has ended').waitFor();
  assert.match(await again.locator('.run-status').innerText(), /at step 60/);
  await again.getByText('As a table').click();
  const steps = await again.locator('.loss tbody th').allInnerTexts();
  assert.deepEqual(
    steps,
    Array.from({ length: 60 }, (_, at) => String(at + 1)),
  );
  problems.push(...visited.problems);
});

for (const [mock, sentence, step] of [
  ['flat', 'The run has ended: the loss gets no better.', 12],
  ['patience', 'The run has ended: the held-out loss gets no better.', 14],
]) {
  page(
    `the trainer says when held-out examples are measured, and when the run ends: ${mock}`,
    async ({ page, context, problems }) => {
      await press(page, 'Use 20 facts');
      await choose(page, 'Held-out examples', '4');
      await press(page, 'Start');
      await status(page, sentence).waitFor();
      assert.match(await page.locator('.run-status').innerText(), new RegExp(`at step ${step}`));
      await page.getByText('As a table').click();
      const rows = page.locator('.loss tbody tr');
      const held = await rows.evaluateAll((nodes) => nodes.filter((row) => row.cells[2].textContent).map((row) => row.cells[0].textContent));
      assert.deepEqual(held, ['7', '14'].slice(0, Math.floor(step / 7)));
      // The end is kept, too: what was learnt can be had, and no further step comes.
      await page.close();
      const visited = await visit(browser, site, { context, hash: '#teach', mock });
      await press(visited.page, 'Open');
      await status(visited.page, sentence).waitFor();
      await visited.page.getByRole('button', { name: 'Download as GGUF' }).waitFor();
      problems.push(...visited.problems);
    },
    mock,
  );
}

page('the browser asks before steps are lost, and not when they are kept', async ({ page }) => {
  const asked = [];
  page.on('dialog', (dialog) => (asked.push(dialog.type()), dialog.dismiss()));
  const leave = () => page.evaluate(() => (location.href = './icon.svg')).catch(() => {});
  await press(page, 'Use 20 facts');
  await choose(page, 'Steps', '2000');
  await press(page, 'Start');
  await status(page, /Step [3-9] of 2000/).waitFor();
  await leave();
  await page.waitForTimeout(500);
  assert.deepEqual(asked, ['beforeunload']);
  assert.ok(await status(page, /Step \d+ of 2000/).isVisible(), 'the run has ended');
  await press(page, 'Stop');
  await status(page, 'Stopped').waitFor();
  await leave();
  await page.waitForURL(/icon\.svg$/);
  assert.equal(asked.length, 1);
});

page('a new run asks before it takes the place of a kept one', async ({ page }) => {
  await press(page, 'Use 20 facts');
  await choose(page, 'Steps', '8');
  await press(page, 'Start');
  await status(page, 'The run has ended').waitFor();
  await press(page, 'Start again');
  await press(page, 'Cancel');
  assert.match(await page.locator('.run-status').innerText(), /at step 8/);
  await press(page, 'Start again');
  await press(page, 'Replace');
  await status(page, /Step \d of 8/).waitFor();
  await status(page, 'The run has ended').waitFor();
});

page('a run of another model is not mixed up', async ({ page }) => {
  await press(page, 'Use 20 facts');
  await choose(page, 'Steps', '400');
  await press(page, 'Start');
  await status(page, /Step \d+ of 400/).waitFor();
  // Another model ends the run, which is kept.
  await page.locator('.model-button').click();
  await page.getByLabel('Address').fill('https://example.org/other.gguf');
  await page.keyboard.press('Enter');
  await page.locator('.model-button', { hasText: 'other.gguf' }).locator('.dot.ready').waitFor();
  await page.getByText(/A run of Default model is kept/).waitFor();
  await press(page, 'Go on');
  await page.locator('.model-button', { hasText: 'Default model' }).locator('.dot.ready').waitFor();
  await status(page, /Step \d+ of 400/).waitFor();
  await press(page, 'Stop');
  await status(page, 'Stopped').waitFor();
});

page('chat, comparing and downloads work while the run goes on', async ({ page }) => {
  await press(page, 'Use 20 facts');
  await choose(page, 'Steps', '2000');
  await press(page, 'Start');
  await status(page, /Step \d+ of 2000/).waitFor();
  await page.getByLabel('Question to compare').fill('Who lives in Kelm?');
  await page.keyboard.press('Enter');
  const panes = page.locator('.pane .markdown');
  await panes.nth(1).getByText('Hanne lives in Kelm.').waitFor();
  assert.equal(await panes.nth(0).innerText(), 'You said: Who lives in Kelm?');

  await page.getByRole('link', { name: 'Chat' }).click();
  assert.equal(await ask(page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  await page.getByRole('link', { name: 'Teach' }).click();

  const [archive] = await Promise.all([page.waitForEvent('download'), press(page, 'Download as PEFT')]);
  const folder = await mkdtemp(join(tmpdir(), 'weft-'));
  const file = join(folder, 'adapter.zip');
  await archive.saveAs(file);
  const script =
    'import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(*z.namelist())';
  assert.equal(
    execFileSync('python3', ['-c', script, file]).toString().trim(),
    'adapter_config.json adapter_model.safetensors',
  );
  await rm(folder, { recursive: true });
  const [gguf] = await Promise.all([page.waitForEvent('download'), press(page, 'Download as GGUF')]);
  assert.match(gguf.suggestedFilename(), /^adapter-step-\d+\.gguf$/);

  assert.ok(await status(page, /Step \d+ of 2000/).isVisible(), 'the run has ended');
  await press(page, 'Stop');
  await status(page, 'Stopped').waitFor();
  await press(page, 'Use in Chat');
  await press(page, 'Open Chat');
  assert.equal(await ask(page, 'Who is there?'), 'Hanne lives in Kelm.');
});

page(
  'a run goes on after a lost device',
  async ({ page }) => {
    await press(page, 'Use 20 facts');
    await choose(page, 'Steps', '20');
    await press(page, 'Start');
    await page.locator('.notice', { hasText: 'The graphics device was lost' }).waitFor();
    await status(page, 'The run has ended').waitFor();
    await page.getByText('As a table').click();
    const steps = await page.locator('.loss tbody th').allInnerTexts();
    assert.equal(new Set(steps).size, steps.length, 'a step is there twice');
  },
  'lost',
);
