// Pages in Chromium that have the package with its real engine, and the native program beside them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { servePackage } from '../package-server.mjs';

const file = (path) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));

// The file of the model that the package and the native program ship.
export const MODEL = file('crates/cli/assets/default.gguf');

// Greedy answers of that model, as another implementation gave them.
export const greedy = JSON.parse(await readFile(file('crates/cli/assets/default-greedy.json'), 'utf8'));

export const facts = await readFile(file('examples/facts.jsonl'), 'utf8');

// The arguments of a Chromium without WebGPU. Its sandbox does not run as root.
export const NO_GPU = ['--disable-gpu', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];

// A browser with a page. `hook` is code that the workers of pages that are opened later run first.
export async function world({ args = NO_GPU } = {}) {
  const all = { hook: '' };
  const hooked = async ({ url }, response) => {
    if (url !== '/package/worker.js' || all.hook === '') return undefined;
    response.writeHead(200, { 'Content-Type': 'text/javascript' });
    response.end(`${await readFile(file('crates/web/js/dist/worker.js'), 'utf8')}\n${all.hook}`);
    return url;
  };
  const server = await servePackage(hooked);
  const browser = await chromium.launch({ executablePath: process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium', args });
  const context = await browser.newContext();
  const open = async () => {
    const page = await context.newPage();
    await page.goto(server.url);
    await page.evaluate(prepare);
    return page;
  };
  const close = async () => {
    await browser.close();
    server.close();
  };
  return Object.assign(all, { browser, page: await open(), open, close });
}

// Runs in the page. The functions of the tests run there, too, and use what this one defines.
async function prepare() {
  globalThis.weft = await import('/package/index.js');
  globalThis.load = (device, source = 'default', options = {}) => weft.Model.load(source, { device, ...options });
  // A greedy answer, its tokens' probabilities, and its end.
  globalThis.answer = async (session, messages, options) => {
    const [ids, logProbs] = [[], []];
    const greedily = { sampling: { temperature: 0 }, maxTokens: 200, ...options };
    for await (const { id, logProb } of session.send(messages, greedily)) {
      ids.push(id);
      logProbs.push(logProb);
    }
    return { ids, logProbs, finish: session.finish };
  };
  globalThis.ask = async (session, messages, maxTokens = 200) => (await answer(session, messages, { maxTokens })).ids;
  // The error that work ends with, and the milliseconds until then; nothing if no error comes.
  globalThis.failed = async (work) => {
    const from = performance.now();
    try {
      await work();
    } catch (error) {
      return { ...error, name: error.name, message: error.message, ms: performance.now() - from };
    }
    return undefined;
  };
  // Bytes as a text, and back: a page and a test exchange JSON.
  globalThis.packed = async (bytes) => {
    const url = await new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.readAsDataURL(new Blob([bytes]));
    });
    return url.slice(url.indexOf(',') + 1);
  };
  globalThis.unpacked = async (text) => new Uint8Array(await (await fetch(`data:;base64,${text}`)).arrayBuffer());
}

// An error of the package with this code and one sentence for people.
export function isRefusal(error, code, words = /[;:,] ?\w+/) {
  assert.ok(error, 'no error came');
  assert.equal(error.name, 'WeftError', error.message);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, /^[^\n]{20,400}$/);
  assert.doesNotMatch(error.message, /undefined|null|NaN|TypeError|\[object|Error:|panicked|unreachable/);
  assert.match(error.message, words);
}

const PROGRAM = process.env.WEFT_PROGRAM ?? file('target/debug/weft');

// Runs the native program on the CPU, and returns what it prints.
export async function native(command, args) {
  const way = 'build it with `cargo build -p cli`, or name one in WEFT_PROGRAM';
  assert.ok(existsSync(PROGRAM), `there is no native program ${PROGRAM}: ${way}`);
  const words = [command, '--device', 'cpu', '--no-cache', ...args];
  const { stdout } = await promisify(execFile)(PROGRAM, words, { maxBuffer: 1 << 26 });
  return stdout;
}
