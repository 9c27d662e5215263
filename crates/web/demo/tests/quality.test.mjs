// What holds in every state: accessibility, width, keyboard, policy, offline, updates.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { accessibility, ask, launch, overflow, serve, visit } from './site.mjs';

let site, browser;
before(async () => ([site, browser] = await Promise.all([serve(), launch()])));
after(async () => {
  await browser?.close();
  await site?.close();
});

/** Looks at one state of the page. */
async function look(page, state) {
  assert.deepEqual(await accessibility(page), [], state);
  assert.ok((await overflow(page)) <= 0, `${state}: the page scrolls sideways`);
}

for (const [colorScheme, width] of [
  ['light', 320],
  ['dark', 1280],
]) {
  test(`every state is accessible and as wide as the window: ${colorScheme}, ${width} px`, async () => {
    const viewport = { width, height: 720 };
    const { page, problems, context } = await visit(browser, site, { colorScheme, viewport });
    await look(page, 'empty');
    await ask(page, 'show me');
    await ask(page, 'think');
    await look(page, 'answers');
    await page.locator('.turn.user').first().hover();
    await page.getByRole('button', { name: 'Edit and send again' }).first().click();
    await look(page, 'edit');
    await page.keyboard.press('Escape');
    await page.getByLabel('Your question').fill('please refuse');
    await page.keyboard.press('Enter');
    await page.locator('.turn .error:not([hidden])').waitFor();
    await look(page, 'error');
    for (const name of ['Settings', 'Export the conversation', ...(width < 900 ? ['Conversations'] : [])]) {
      await page.getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').waitFor();
      await look(page, name);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await page.locator('.model-button').click();
    await page.getByLabel('Address').fill('nonsense');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await look(page, 'models');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Teach' }).click();
    await page.getByLabel('Examples, one a line').fill('nonsense');
    await page.locator('.line-errors li').waitFor();
    await look(page, 'bad lines');
    await page.getByRole('button', { name: 'Use 20 facts' }).click();
    await page.getByText('More settings').click();
    await page.getByRole('spinbutton', { name: 'Steps', exact: true }).fill('2000');
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.locator('.run-status', { hasText: /Step \d+ of 2000/ }).waitFor();
    await look(page, 'run');
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.locator('.run-status', { hasText: 'Stopped' }).waitFor();
    await page.getByText('As a table').click();
    await look(page, 'stopped');
    assert.deepEqual(problems, []);
    await context.close();
  });
}

test('everything is reached by the keyboard alone, and the focus is visible', async () => {
  const { page, problems, context } = await visit(browser, site, { viewport: { width: 1280, height: 800 } });
  const focused = () =>
    page.evaluate(() => {
      const { activeElement: node } = document;
      return node === document.body ? '' : node.getAttribute('aria-label') || node.textContent;
    });
  /** Presses Tab until the focus is on a name. */
  const reach = async (name, key = 'Tab') => {
    for (let presses = 0; presses < 60; presses += 1) {
      if ((await focused()).includes(name)) return;
      await page.keyboard.press(key);
      const seen = await page.evaluate(() => {
        const node = document.activeElement;
        const box = node.closest('.composer-box') ?? node;
        const { outlineStyle, boxShadow } = getComputedStyle(box);
        return node === document.body || outlineStyle !== 'none' || boxShadow !== 'none';
      });
      assert.ok(seen, `${await focused()} shows no focus`);
    }
    assert.fail(`the keyboard does not reach ${name}`);
  };
  await reach('Your question');
  await page.keyboard.type('Where does Mira live?');
  await page.keyboard.press('Enter');
  await page.getByText('Mira lives in Bellwharf.', { exact: true }).first().waitFor();
  await reach('Answer again', 'Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Answer again' }).waitFor();
  await reach('Settings', 'Shift+Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await focused(), 'Settings');
  await reach('Teach', 'Shift+Tab');
  await page.keyboard.press('Enter');
  await reach('Use 20 facts');
  await page.keyboard.press('Enter');
  await reach('Start');
  await page.keyboard.press('Enter');
  await page.locator('.run-status', { hasText: 'Step' }).waitFor();
  await reach('Stop');
  await page.keyboard.press('Enter');
  await page.locator('.run-status', { hasText: 'Stopped' }).waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test('the policy forbids inline code, inline styles and other hosts', async () => {
  const { page, context } = await visit(browser, site);
  const refused = await page.evaluate(async () => {
    const directives = [];
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) =>
      directives.push(effectiveDirective),
    );
    const script = document.createElement('script');
    script.textContent = 'globalThis.broken = true';
    document.body.append(script);
    document.body.insertAdjacentHTML('beforeend', '<p style="color: red">x</p>');
    const picture = document.createElement('img');
    picture.src = 'https://example.org/x.png';
    document.body.append(picture);
    await fetch('http://example.org/').catch(() => {});
    await new Promise((soon) => setTimeout(soon, 200));
    return { directives: directives.sort(), broken: globalThis.broken };
  });
  assert.equal(refused.broken, undefined);
  assert.deepEqual(refused.directives, ['connect-src', 'img-src', 'script-src-elem', 'style-src-attr']);
  await context.close();
});

test('the pages work without their server after the first visit', async () => {
  const own = await serve();
  const { page, context, problems } = await visit(browser, own);
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  await own.close();
  await page.reload();
  await page.locator('.dot.ready').waitFor();
  assert.equal(await ask(page, 'Where does Mira live?'), 'Mira lives in Bellwharf.');
  const part = await page.evaluate(async () => {
    const response = await fetch('./icon.svg', { headers: { range: 'bytes=1-3' } });
    return [response.status, response.headers.get('content-range')?.split('/')[0], await response.text()];
  });
  assert.deepEqual(part, [206, 'bytes 1-3', 'svg']);
  assert.deepEqual(problems, []);
  await context.close();
});

test('a new build is offered, and not in the middle of an answer', async () => {
  const edits = new Map();
  const own = await serve(edits);
  const { page, context, problems } = await visit(browser, own, { mock: 'slow' });
  await page.waitForFunction(() => navigator.serviceWorker.controller);
  const worker = await readFile(new URL('../dist-mock/sw.js', import.meta.url), 'utf8');
  edits.set('sw.js', worker.replace(/"[0-9a-f]{16}"/, '"another build"'));
  await page.getByLabel('Your question').fill('a long answer');
  await page.keyboard.press('Enter');
  await page.locator('.turn .markdown', { hasText: 'This' }).waitFor();
  await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.getRegistration();
    await registration.update();
    while (!registration.waiting) await new Promise((soon) => setTimeout(soon, 20));
  });
  await page.waitForTimeout(200);
  const offer = page.locator('.notice', { hasText: 'A new version of these pages is there.' });
  assert.equal(await offer.count(), 0);
  await page.keyboard.press('Escape');
  await offer.waitFor();
  await Promise.all([page.waitForEvent('load'), offer.getByRole('button', { name: 'Reload' }).click()]);
  await page.locator('.turn.assistant', { hasText: 'stopped' }).waitFor();
  assert.deepEqual(problems, []);
  await context.close();
  await own.close();
});
