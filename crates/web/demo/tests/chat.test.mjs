// The view Chat with canned answers.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answer, ask, hide, launch, serve, snapshot, visit } from './site.mjs';

let site, browser;
before(async () => ([site, browser] = await Promise.all([serve(), launch()])));
after(async () => {
  await browser?.close();
  await site?.close();
});

/** A test in a window of its own, at whose end nothing forbidden has happened. */
function page(name, options, run) {
  test(name, async () => {
    const visited = await visit(browser, site, options);
    await run(visited);
    assert.deepEqual(visited.problems, []);
    await visited.context.close();
  });
}

page('answers, and sends by Enter but not by Shift+Enter', {}, async ({ page }) => {
  assert.equal(await ask(page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  const field = page.getByLabel('Your question');
  await field.fill('one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two');
  assert.equal(await field.inputValue(), 'one\ntwo');
  await page.keyboard.press('Enter');
  assert.equal(await answer(page, 1), 'You said: one\ntwo'.replace('\n', ' '));
});

page('stops, and keeps what was said', { mock: 'slow' }, async ({ page }) => {
  await page.getByLabel('Your question').fill('a long answer');
  await page.keyboard.press('Enter');
  await page.locator('.turn .markdown', { hasText: 'This sentence' }).waitFor();
  await page.getByRole('button', { name: 'Stop the answer' }).click();
  await page.locator('.turn.assistant', { hasText: 'stopped' }).waitFor();
  const text = await page.locator('.turn .markdown').innerText();
  assert.match(text, /^This sentence/);
  assert.ok(text.length < 2000, 'the answer went on');
  assert.equal(await ask(page, 'and now?'), 'You said: and now?');
});

page('answers again, and edits an earlier question', {}, async ({ page }) => {
  await ask(page, 'first');
  await ask(page, 'second');
  await page.getByRole('button', { name: 'Answer again' }).first().click();
  await page.waitForFunction(() => document.querySelectorAll('.turn').length === 2);
  assert.equal(await answer(page, 0), 'You said: first');

  await page.locator('.turn.user').hover();
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  const edit = page.locator('.edit textarea');
  await edit.fill('lost');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.bubble').innerText(), 'first');
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await edit.fill('changed');
  await page.keyboard.press('Enter');
  await page.getByText('You said: changed', { exact: true }).first().waitFor();
  assert.equal(await page.locator('.turn').count(), 2);
});

page('shows Markdown as nodes, and nothing of the answer becomes markup', {}, async ({ page }) => {
  await ask(page, 'show me');
  const markdown = page.locator('.turn .markdown');
  assert.equal(await markdown.locator('table tr').count(), 3);
  assert.equal(await markdown.locator('ol > li').count(), 2);
  assert.equal(await markdown.locator('ol ul > li').count(), 2);
  assert.equal(await markdown.locator('pre code').innerText(), 'def greet(name):\n    return f"Hello, {name}!"');
  const link = markdown.getByRole('link', { name: 'on the map' });
  assert.equal(await link.getAttribute('href'), 'https://example.org/map');
  assert.match(await link.getAttribute('rel'), /noopener/);
  assert.equal(await markdown.locator('img, script, style').count(), 0);
  assert.match(await markdown.innerText(), /<script>alert\(1\)<\/script>/);
});

page('folds the thinking', {}, async ({ page }) => {
  await ask(page, 'think');
  const thinking = page.locator('.thinking');
  assert.equal(await thinking.evaluate((node) => node.open), false);
  await thinking.locator('summary').click();
  assert.match(await thinking.innerText(), /Six times seven/);
});

page('shows the call of a tool and takes its result', {}, async ({ page }) => {
  await page.getByRole('button', { name: 'Settings' }).click();
  const tools = page.getByLabel('Tools, as JSON');
  await tools.fill('[{]');
  await page.keyboard.press('Tab');
  await page.getByText('The tools are not JSON').waitFor();
  await tools.fill('[{"type": "function", "function": {"name": "get_weather"}}]');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Escape');
  await page.getByLabel('Your question').fill('What is the weather?');
  await page.keyboard.press('Enter');
  await page.getByText('Calls get_weather').waitFor();
  await page.getByLabel('Result of the tool').fill('sunny');
  await page.getByRole('button', { name: 'Give the result' }).click();
  assert.equal(await answer(page, 1), 'The tool says sunny.');
});

page('comes back to the conversation after a reload, and lists, renames and deletes', {}, async ({ page }) => {
  await ask(page, 'Where does Mira live?');
  await page.reload();
  await page.getByText('Mira lives in Bellwharf.', { exact: true }).first().waitFor();

  await page.getByRole('button', { name: 'New chat' }).click();
  await page.locator('.empty').waitFor();
  await ask(page, 'another one');
  const list = page.locator('.conversations li');
  assert.equal(await list.count(), 2);
  await page.getByRole('button', { name: 'Rename: another one' }).click();
  await page.getByLabel('Title').fill('Renamed');
  await page.keyboard.press('Enter');
  await list.filter({ hasText: 'Renamed' }).waitFor();
  await page.getByRole('button', { name: 'Delete: Where does Mira live?' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('.conversations li').length === 1);
});

page(
  'a tab that dies in an answer comes back to what was said',
  { mock: 'slow' },
  async ({ page, context, problems }) => {
    await page.getByLabel('Your question').fill('a long answer');
    await page.keyboard.press('Enter');
    await page.locator('.turn .markdown', { hasText: 'many. This' }).waitFor();
    // The conversation is kept every second.
    await page.waitForTimeout(1300);
    await page.close();
    const again = await visit(browser, site, { context });
    await again.page.locator('.turn.assistant', { hasText: 'interrupted' }).waitFor();
    assert.match(await again.page.locator('.turn .markdown').innerText(), /^This sentence/);
    problems.push(...again.problems);
  },
);

page('keeps the session when the page is hidden, and gives it back', {}, async ({ page }) => {
  await ask(page, 'one two three four five');
  await hide(page);
  await snapshot(page);
  await page.reload();
  await page.locator('.dot.ready').waitFor();
  await page.locator('.turn.assistant').waitFor();
  await ask(page, 'six');
  // Without the snapshot nothing of the prompt would be there.
  await page.locator('.turn.assistant', { hasText: 'prompt tokens reused' }).waitFor();
});

page('keeps a small session after an answer, for a tab that crashes', {}, async ({ page }) => {
  await ask(page, 'one two three four five');
  await snapshot(page);
});

page('tabs follow each other: the list, titles, answers, deletions', {}, async ({ page, context, problems }) => {
  const visited = await visit(browser, site, { context });
  const other = visited.page;
  const list = (tab) => tab.locator('.conversations li');
  await page.getByRole('button', { name: 'New chat' }).click();
  await ask(page, 'first');
  await list(other).filter({ hasText: 'first' }).waitFor();
  await other.getByRole('button', { name: 'Rename: first' }).click();
  await other.getByLabel('Title').fill('Renamed');
  await other.keyboard.press('Enter');
  await page.locator('.chat-title', { hasText: 'Renamed' }).waitFor();
  await list(page).filter({ hasText: 'Renamed' }).waitFor();

  // Both tabs have the conversation open.
  await list(other).filter({ hasText: 'Renamed' }).getByRole('button').first().click();
  await ask(other, 'second');
  await page.getByText('You said: second', { exact: true }).first().waitFor();
  assert.equal(await page.locator('.turn').count(), 4);
  await ask(page, 'third');
  await other.getByText('You said: third', { exact: true }).first().waitFor();

  await other.getByRole('button', { name: 'Delete: Renamed' }).click();
  await other.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.locator('.empty').waitFor();
  assert.equal(await list(page).count(), 0);
  problems.push(...visited.problems);
});

page('tells when the session is too large to keep', { mock: 'large-snapshot' }, async ({ page }) => {
  await ask(page, 'one');
  await hide(page);
  await page.locator('.notice', { hasText: 'is kept, but not what the model computed' }).waitFor();
});

page('exports Markdown and JSON', {}, async ({ page }) => {
  await ask(page, 'Where does Mira live?');
  const texts = [];
  for (const kind of ['Markdown', 'JSON']) {
    await page.getByRole('button', { name: 'Export the conversation' }).click();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: kind }).click()]);
    const chunks = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk);
    texts.push(Buffer.concat(chunks).toString());
  }
  assert.match(texts[0], /## You\n\nWhere does Mira live\?\n\n## Model\n\nMira lives in Bellwharf\./);
  assert.deepEqual(
    JSON.parse(texts[1]).messages.map(({ content }) => content),
    ['Where does Mira live?', 'Mira lives in Bellwharf.'],
  );
});

page('a lost device is one line, and the answer comes', { mock: 'lost,gpu' }, async ({ page }) => {
  assert.equal(await ask(page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  await page.locator('.notice', { hasText: 'The graphics device was lost' }).waitFor();
});

page('a worker that ended is one line, and the answer comes', { mock: 'ended' }, async ({ page }) => {
  assert.equal(await ask(page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  await page.locator('.notice', { hasText: 'The worker of the engine ended' }).waitFor();
});

page('an error is a sentence in its place, and the next answer comes', { mock: 'crash' }, async ({ page }) => {
  await page.getByLabel('Your question').fill('please refuse this');
  await page.keyboard.press('Enter');
  await page.getByText('The chat template refuses this conversation; start a new one.').first().waitFor();
  await page.getByLabel('Your question').fill('what else is there');
  await page.keyboard.press('Enter');
  await page.getByText('Something went wrong in the page; try again').first().waitFor();
  assert.equal(await page.getByLabel('Your question').isEnabled(), true);
});

page('says an answer by sentences', { mock: 'slow' }, async ({ page }) => {
  await page.evaluate(() => {
    globalThis.said = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) globalThis.said.push(node.textContent);
    }).observe(document.querySelector('[aria-live=polite]'), { childList: true });
  });
  await page.getByLabel('Your question').fill('a long answer');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => globalThis.said.length >= 2);
  assert.deepEqual(
    await page.evaluate(() => globalThis.said.slice(0, 2)),
    Array(2).fill('This sentence is one of many.'),
  );
  await page.keyboard.press('Escape');
  await page.locator('.turn.assistant', { hasText: 'stopped' }).waitFor();
});

page('renders hostile Markdown at once, and addresses that a person may follow', {}, async ({ page }) => {
  const hostile = [
    '[',
    '*',
    '**a',
    '`',
    '``` ',
    '> ',
    '> \n',
    '- ',
    '- \n',
    '| a ',
    '| a |\n',
    '![](',
    '~~',
    '__a',
    'http://',
    '\\',
  ];
  for (const piece of hostile) {
    const began = Date.now();
    // Typing thousands of lines would measure the field of the browser.
    await page.getByLabel('Your question').evaluate(
      (field, text) => {
        field.value = text;
        field.dispatchEvent(new Event('input'));
      },
      piece.repeat(20_000).slice(0, 20_000),
    );
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('.turn.assistant').last().getByRole('button', { name: 'Answer again' }).waitFor();
    assert.ok(Date.now() - began < 10_000, `${JSON.stringify(piece)} takes ${Date.now() - began} ms`);
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.locator('.empty').waitFor();
  }
  await ask(
    page,
    '[a](javascript:alert(1)) [b](data:text/html,x) <https://example.org/c> https://example.org/d. ![e](https://example.org/e.png)',
  );
  const links = await page.locator('.turn .markdown a').evaluateAll((nodes) => nodes.map((node) => node.href));
  assert.deepEqual(links, ['https://example.org/c', 'https://example.org/d', 'https://example.org/e.png']);
});

page('an answer that grew has the nodes of one that is drawn at once', {}, async ({ page }) => {
  await ask(page, 'show me');
  const html = () => page.locator('.turn .markdown').evaluate((node) => node.innerHTML);
  const grown = await html();
  await page.reload();
  await page.locator('.turn .markdown').waitFor();
  assert.equal(await html(), grown);
});
