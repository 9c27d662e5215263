// Computes logits of models with the package in a browser.
// stdin: {"browser": path of a Chromium, "out": folder, "jobs": [{"device", "file", "ids"}]}
// stdout: a line for each job: {"job", "executor", "seconds", "error"?}; its logits are in out/JOB.f32
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { chromium } from 'playwright-core';
import { WEBGPU, servePackage } from './package-server.mjs';

// Serves the models of the jobs, and takes logits.
const jobFiles = ({ out, jobs }) => async (request, response) => {
  const [, kind, job] = /^\/(model|logits)\/(\d+)$/.exec(request.url) ?? [];
  if (kind === 'logits') {
    await pipeline(request, createWriteStream(join(out, `${job}.f32`)));
    response.end();
  } else if (kind === 'model') {
    const { size } = await stat(jobs[job].file);
    response.writeHead(200, { 'Content-Length': size });
    await pipeline(createReadStream(jobs[job].file), response);
  }
  return kind;
};

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
  const server = await servePackage(jobFiles(request));
  const browser = await chromium.launch({ executablePath: request.browser, args: WEBGPU });
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
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
