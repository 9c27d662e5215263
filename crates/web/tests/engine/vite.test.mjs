// The packed package in a fresh project of Vite: its types, its build, and an answer of the built page.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';
import { NO_GPU, greedy } from './page.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const run = (program, args, cwd) => promisify(execFile)(program, args, { cwd });

const FILES = {
  'package.json': JSON.stringify({ name: 'fresh', private: true, type: 'module' }),
  'tsconfig.json': JSON.stringify({
    compilerOptions: { module: 'esnext', moduleResolution: 'bundler', target: 'es2022', lib: ['es2022', 'dom'], strict: true, skipLibCheck: false, noEmit: true, types: [] },
    include: ['main.ts'],
  }),
  'index.html': '<!doctype html><title>fresh</title><pre></pre><script type="module" src="/main.ts"></script>',
  'main.ts': `import { Model, WeftError, type Finish } from '@weft-llm/web';

const out = document.querySelector('pre')!;
try {
  const model = await Model.load('default', { device: 'cpu' });
  const chat = await model.session({ context: 512 });
  const ids: number[] = [];
  for await (const { id } of chat.send(${JSON.stringify(greedy[0].messages)}, { sampling: { temperature: 0 } })) ids.push(id);
  const finish: Finish | undefined = chat.finish;
  await model.close();
  out.textContent = JSON.stringify({ ids, reason: finish?.reason });
} catch (error) {
  out.textContent = error instanceof WeftError ? error.message : String(error);
}
`,
};
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };

let project;
before(async () => {
  // Vite and TypeScript are found in the folders above.
  await mkdir(join(root, 'tests/built'), { recursive: true });
  project = await mkdtemp(join(root, 'tests/built/fresh-'));
});
after(() => rm(project, { recursive: true, force: true }));

test('the packed package works in a fresh project of Vite', { timeout: 120_000 }, async () => {
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(project, name), text);
  await run('npm', ['pack', '--workspace', 'js', '--pack-destination', project], root);
  const archive = (await readdir(project)).find((name) => name.endsWith('.tgz'));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${archive}`], project);
  assert.deepEqual(await readdir(join(project, 'node_modules/@weft-llm')), ['web']);
  await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project], project);
  await run(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--base', './', '--logLevel', 'error'], project);

  const server = createServer(async ({ url }, response) => {
    const name = url === '/' ? 'index.html' : url.slice(1);
    const bytes = await readFile(join(project, 'dist', name)).catch(() => undefined);
    response.writeHead(bytes ? 200 : 404, { 'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream' });
    response.end(bytes);
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const browser = await chromium.launch({ executablePath: process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium', args: NO_GPU });
  try {
    const page = await browser.newPage();
    await page.goto(`http://localhost:${server.address().port}/`);
    await page.waitForFunction(() => document.querySelector('pre').textContent !== '');
    const said = await page.locator('pre').textContent();
    assert.equal(said, JSON.stringify({ ids: greedy[0].reply_ids, reason: 'end' }));
  } finally {
    await browser.close();
    server.close();
  }
});
