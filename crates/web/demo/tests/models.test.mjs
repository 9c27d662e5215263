// The choice of models: addresses, files, the cache, cancelling, errors.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ask, drop, launch, serve, until, visit } from './site.mjs';

let site, browser;
before(async () => ([site, browser] = await Promise.all([serve(), launch()])));
after(async () => {
  await browser?.close();
  await site?.close();
});

function page(name, options, run) {
  test(name, async () => {
    const visited = await visit(browser, site, options);
    await run(visited);
    assert.deepEqual(visited.problems, []);
    await visited.context.close();
  });
}

const openModels = (page) => page.locator('.model-button').click();

async function loadAddress(page, address) {
  await openModels(page);
  await page.getByLabel('Address').fill(address);
  await page.keyboard.press('Enter');
}

page('an address is loaded, kept as recent, and deleted from the cache', {}, async ({ page }) => {
  await loadAddress(page, 'https://example.org/files/small.gguf');
  await page.locator('.model-button', { hasText: 'small.gguf' }).locator('.dot.ready').waitFor();
  await openModels(page);
  const cached = page.getByRole('region', { name: 'On this device' });
  await page.getByRole('button', { name: 'Forget: small.gguf' }).waitFor();
  await page.getByRole('button', { name: 'Delete: small.gguf' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await cached.waitFor({ state: 'detached' });
});

page('the last model comes back after a reload', {}, async ({ page }) => {
  await loadAddress(page, 'https://example.org/files/small.gguf');
  await page.locator('.model-button', { hasText: 'small.gguf' }).locator('.dot.ready').waitFor();
  await page.reload();
  await page.locator('.model-button', { hasText: 'small.gguf' }).locator('.dot.ready').waitFor();
});

page('wrong addresses are refused with a sentence', {}, async ({ page }) => {
  for (const [address, sentence] of [
    ['not an address', 'This is no address; write https://HOST/FILE.gguf or hf:OWNER/REPO.'],
    ['http://example.org/a.gguf', 'A page may only read from https addresses and from this computer; use https.'],
    ['hf:only-an-owner', 'is not a name of the hub'],
  ]) {
    await loadAddress(page, address);
    await page.getByRole('alert').filter({ hasText: sentence }).waitFor();
    await page.keyboard.press('Escape');
  }
  assert.match(await ask(page, 'Where does Mira live?'), /Bellwharf/);
});

page('a file that cannot be loaded is a sentence, and the earlier model is one press away', {}, async ({ page }) => {
  for (const [name, sentence] of [
    ['404.gguf', 'The server has no file at this address (404); check the address.'],
    ['html.gguf', 'a web page instead of a GGUF file'],
    ['cors.gguf', 'download it and drop it here.'],
  ]) {
    await loadAddress(page, `https://example.org/${name}`);
    await page.locator('.banner', { hasText: sentence }).waitFor();
    await page.getByRole('button', { name: 'Back to Default model' }).click();
    await page.locator('.dot.ready').waitFor();
  }
  assert.match(await ask(page, 'Where does Mira live?'), /Bellwharf/);
});

page('a download is shown and cancelled', { mock: 'slow-load' }, async ({ page }) => {
  await loadAddress(page, 'https://example.org/files/large.gguf');
  await page.locator('.banner', { hasText: /Downloads, \d+ MB of 640 MB/ }).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('.banner', { hasText: 'The load was cancelled.' }).waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('.banner', { hasText: 'Downloads' }).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Back to Default model' }).waitFor();
});

page(
  'a tab that died in a load does not load the model again',
  { mock: 'slow-load' },
  async ({ page, context, problems }) => {
    await loadAddress(page, 'https://example.org/files/large.gguf');
    await page.locator('.banner', { hasText: /Downloads, \d+ MB/ }).waitFor();
    await page.close();
    const again = await visit(browser, site, { context });
    await again.page.locator('.notice', { hasText: 'The page ended while it loaded large.gguf' }).waitFor();
    assert.match(await again.page.locator('.model-button').innerText(), /Default model/);
    problems.push(...again.problems);
  },
);

page('the preparation of the GPU is shown', { mock: 'gpu,slow-load', ready: false }, async ({ page }) => {
  await page.locator('.banner', { hasText: /Prepares the GPU, \d+ of 30/ }).waitFor();
  await page.locator('.dot.ready').waitFor();
});

page(
  'a browser without pickers, writable files, locks and channels has its other paths',
  {
    init: () => {
      delete window.showOpenFilePicker;
      delete DataTransferItem.prototype.getAsFileSystemHandle;
      delete FileSystemFileHandle.prototype.createWritable;
      delete window.BroadcastChannel;
      delete Navigator.prototype.locks;
      delete Navigator.prototype.serviceWorker;
    },
  },
  async ({ page }) => {
    await openModels(page);
    const chosen = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Choose a file' }).first().click();
    await (await chosen).setFiles({ name: 'mine.gguf', mimeType: '', buffer: Buffer.from('GGUF and so on') });
    await page.locator('.model-button', { hasText: 'mine.gguf' }).locator('.dot.ready').waitFor();
    assert.match(await ask(page, 'Where does Mira live?'), /Bellwharf/);
    // Snapshots are rows of the database then.
    await until(page, async () => {
      const opening = indexedDB.open('weft');
      await new Promise((opened) => (opening.onsuccess = opened));
      const rows = opening.result.transaction('blobs').objectStore('blobs').getAllKeys();
      await new Promise((read) => (rows.onsuccess = read));
      opening.result.close();
      return rows.result.some((key) => key.startsWith('snapshot-'));
    });
  },
);

page('a dropped file is a model', {}, async ({ page }) => {
  await drop(page, 'main', [['mine.gguf', 'GGUF and so on']]);
  await page.locator('.model-button', { hasText: 'mine.gguf' }).locator('.dot.ready').waitFor();
});

page('a dropped adapter is applied, scaled and removed', {}, async ({ page }) => {
  await drop(page, 'main', [
    ['adapter_config.json', '{}'],
    ['adapter_model.safetensors', 'x'],
  ]);
  await page.locator('.notice', { hasText: 'The adapter is applied.' }).waitFor();
  assert.equal(await ask(page, 'Who is there?'), 'Hanne lives in Kelm.');
  await openModels(page);
  const scale = page.getByLabel('Scale of adapter_config');
  await scale.fill('0');
  await page.keyboard.press('Escape');
  assert.equal(await ask(page, 'Who is there?'), 'You said: Who is there?');
  await openModels(page);
  await page.getByRole('button', { name: 'Remove adapter_config' }).click();
  await scale.waitFor({ state: 'detached' });
});

page('suggestions tell sizes, and those that do not fit cannot be chosen', {}, async ({ page }) => {
  await openModels(page);
  const suggested = page.getByRole('region', { name: 'To download' });
  const small = suggested.locator('li', { hasText: 'qwen3-0.6b' });
  await small.getByRole('button').waitFor();
  assert.match(await small.innerText(), /639 MB/);
  const large = suggested.locator('li', { hasText: 'qwen3-30b-a3b' });
  assert.equal(await large.getByRole('button').count(), 0);
  assert.match(await large.innerText(), /without a GPU a page has/);
});
