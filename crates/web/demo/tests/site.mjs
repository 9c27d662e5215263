// A static server over the built pages, and a Chromium that looks at them.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const require = createRequire(import.meta.url);
const AXE = join(dirname(require.resolve('axe-core')), 'axe.min.js');
/** The pages lie in a folder of the host, as on a static host of many sites. */
const FOLDER = '/some/folder/';
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/** Serves the pages of a build. `edits` are texts that the server puts in place of a file. */
export async function serve(edits = new Map(), build = 'dist-mock') {
  const root = fileURLToPath(new URL(`../${build}/`, import.meta.url));
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname;
    const name = normalize(path.slice(FOLDER.length) || 'index.html');
    const type = { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream' };
    if (edits.has(name)) return response.writeHead(200, type).end(edits.get(name));
    const file = join(root, name);
    const found = path.startsWith(FOLDER) && !name.startsWith('..') && (await stat(file).catch(() => undefined));
    if (!found || !found.isFile()) return response.writeHead(404).end();
    response.writeHead(200, type);
    createReadStream(file).pipe(response);
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const url = `http://localhost:${server.address().port}${FOLDER}`;
  const close = () => new Promise((closed) => (server.close(closed), server.closeAllConnections()));
  return { url, close };
}

export async function launch() {
  const executablePath = process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium';
  // A browser does not run its sandbox as root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}

/**
 * A page that keeps what must never happen: broken policies, requests to other hosts, errors of
 * scripts. `problems` is empty at the end of every test.
 */
export async function visit(browser, site, { mock = '', hash = '', context, ready = true, init, ...options } = {}) {
  const owner = context ?? (await browser.newContext({ reducedMotion: 'reduce', ...options }));
  if (init) await owner.addInitScript(init);
  const page = await owner.newPage();
  page.setDefaultTimeout(20_000);
  const problems = [];
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) problems.push(message.text());
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    const own = origin === new URL(site.url).origin || ['blob:', 'data:'].includes(protocol);
    if (!own) problems.push(`request: ${request.url()}`);
  });
  await page.goto(`${site.url}?mock=${mock}${hash}`);
  if (ready) await page.locator('.dot.ready').waitFor();
  return { page, problems, context: owner };
}

/** Asks a question and waits for the end of the answer. Gives the text of the answer. */
export async function ask(page, question) {
  const before = await page.locator('.turn.assistant').count();
  await page.getByLabel('Your question').fill(question);
  await page.keyboard.press('Enter');
  return answer(page, before);
}

/** Waits for the end of the answer behind `before` others. */
export async function answer(page, before) {
  const turn = page.locator('.turn.assistant').nth(before);
  await turn.getByRole('button', { name: 'Answer again' }).waitFor();
  return turn.locator('.markdown').innerText();
}

/** What axe finds in the page as it is now, as readable lines. */
export async function accessibility(page) {
  if (!(await page.evaluate(() => 'axe' in globalThis))) {
    // The policy of the pages forbids code in the page: the driver puts it in from outside.
    const { readFile } = await import('node:fs/promises');
    await page.evaluate(await readFile(AXE, 'utf8'));
  }
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  );
}

/** Lets the page see what it sees when another tab is chosen. */
export function hide(page) {
  return page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
    delete document.hidden;
  });
}

/** Waits until a function in the page, which may take time, gives true. `waitForFunction` takes a promise for true. */
export async function until(page, look, argument) {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await page.evaluate(look, argument)) return;
    await page.waitForTimeout(50);
  }
  throw new Error(`it did not come to be: ${look}`);
}

/**
 * Waits until a session is kept: the row that names it is written after its bytes. `than` is a time:
 * the file is newer.
 */
export function snapshot(page, than = 0) {
  return until(page, async (than) => {
    const opening = indexedDB.open('weft');
    await new Promise((opened) => (opening.onsuccess = opened));
    const row = opening.result.transaction('values').objectStore('values').get('snapshots');
    await new Promise((read) => (row.onsuccess = read));
    opening.result.close();
    const [entry] = row.result ?? [];
    if (entry === undefined || than === 0) return entry !== undefined;
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('pages');
    const file = await (await folder.getFileHandle(`snapshot-${entry.conversation}`)).getFile();
    return file.lastModified > than;
  }, than);
}

/** Drops files on a part of the page. A file is a name, and a text or a list of bytes. */
export function drop(page, selector, files) {
  return page.evaluate(
    ([selector, files]) => {
      const dataTransfer = new DataTransfer();
      for (const [name, content] of files) {
        const part = typeof content === 'string' ? content : new Uint8Array(content);
        dataTransfer.items.add(new File([part], name));
      }
      const zone = document.querySelector(selector);
      for (const type of ['dragenter', 'dragover', 'drop']) {
        zone.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
      }
    },
    [selector, files],
  );
}

/** Pixels by which the page is wider than the window. */
export function overflow(page) {
  return page.evaluate(() => {
    const boxes = [...document.querySelectorAll('body, main:not([hidden]), .scroller, dialog[open] .dialog-body')];
    return Math.max(
      document.documentElement.scrollWidth - innerWidth,
      ...boxes.map((box) => box.scrollWidth - box.clientWidth),
    );
  });
}
