// Computes logits of models with the package in a browser.
// stdin: {"browser": path of a Chromium, "out": folder, "jobs": [{"device", "file", "ids"}]}
// stdout: a line for each job: {"job", "executor", "seconds", "error"?}; its logits are in out/JOB.f32
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const PACKAGE = fileURLToPath(new URL('../js/dist/', import.meta.url));
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm', '.html': 'text/html' };

// Serves the package and the models of the jobs, and takes logits.
async function serve({ out, jobs }) {
  const answer = async (request, response) => {
    const [, kind, rest] = /^\/(package|model|logits)\/(.+)$/.exec(request.url) ?? [];
    if (kind === 'logits') {
      await pipeline(request, createWriteStream(join(out, `${rest}.f32`)));
      response.end();
    } else if (kind === 'model') {
      const { size } = await stat(jobs[rest].file);
      response.writeHead(200, { 'Content-Length': size });
      await pipeline(createReadStream(jobs[rest].file), response);
    } else if (kind === 'package' && !rest.includes('..')) {
      response.writeHead(200, { 'Content-Type': TYPES[extname(rest)] ?? 'application/octet-stream' });
      response.end(await readFile(join(PACKAGE, rest)));
    } else {
      response.writeHead(200, { 'Content-Type': 'text/html' });
      response.end('<!doctype html><title>goldens</title>');
    }
  };
  const server = createServer((request, response) => answer(request, response).catch(() => response.destroy()));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

// Runs in the page.
async function compute({ job, device, ids }) {
  const { Model } = await import('/package/index.js');
  const began = performance.now();
  const model = await Model.load(new URL(`/model/${job}`, location.href), { device, cache: 'none' });
  try {
    const session = await model.session({ context: ids.length, kv: 'f32', precision: 'f32' });
    const { logits } = await session.logits(Uint32Array.from(ids));
    await fetch(`/logits/${job}`, { method: 'POST', body: logits });
    return { executor: model.info.executor, seconds: (performance.now() - began) / 1000 };
  } finally {
    await model.close();
  }
}

async function run(request) {
  const server = await serve(request);
  const args = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
  const browser = await chromium.launch({ executablePath: request.browser, args });
  try {
    const page = await browser.newPage();
    await page.goto(`http://localhost:${server.address().port}/`);
    for (const [job, { device, ids }] of request.jobs.entries()) {
      const said = await page.evaluate(compute, { job, device, ids }).catch((error) => ({
        executor: device,
        seconds: 0,
        error: error.message.split('\n')[0],
      }));
      console.log(JSON.stringify({ job, ...said }));
    }
  } finally {
    await browser.close();
    server.close();
  }
}

await run(JSON.parse(await text(process.stdin)));
