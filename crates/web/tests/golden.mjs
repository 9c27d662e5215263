// Computes logits of models, and steps of training, with the package in a browser.
// stdin: {"browser": path of a Chromium, "out": folder, "jobs": [JOB, ..]}, where a JOB is
//   {"device", "file", "ids"}, whose logits are written to out/JOB.f32, or
//   {"device", "file", "init": paths of an adapter, "train": options, "steps"}, whose adapter is
//   written to out/JOB.safetensors
// stdout: a line for each job: {"job", "executor", "seconds", "error"?, "losses"?, "norms"?, "after"?}
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { chromium } from 'playwright-core';
import { WEBGPU, servePackage } from './package-server.mjs';

// Serves the files of the jobs, and takes what was computed.
const jobFiles = ({ out, jobs }) => async (request, response) => {
  const [, kind, job, n] = /^\/(model|init|f32|safetensors)\/(\d+)(?:\/(\d+))?$/.exec(request.url) ?? [];
  if (kind === undefined) return undefined;
  if (request.method === 'POST') {
    await pipeline(request, createWriteStream(join(out, `${job}.${kind}`)));
    response.end();
  } else {
    const file = kind === 'init' ? jobs[job].init[n] : jobs[job].file;
    const { size } = await stat(file);
    response.writeHead(200, { 'Content-Length': size });
    await pipeline(createReadStream(file), response);
  }
  return kind;
};

// Runs in the page.
async function compute({ job, device, ids, init, train, steps }) {
  const { Model } = await import('/package/index.js');
  const began = performance.now();
  const model = await Model.load(new URL(`/model/${job}`, location.href), { device, cache: 'none' });
  const give = (kind, body) => fetch(`/${kind}/${job}`, { method: 'POST', body });
  const done = (more) => ({ executor: model.info.executor, seconds: (performance.now() - began) / 1000, ...more });
  try {
    if (train === undefined) {
      const session = await model.session({ context: ids.length, kv: 'f32', precision: 'f32' });
      const { logits } = await session.logits(Uint32Array.from(ids));
      await give('f32', logits);
      return done({});
    }
    const fetched = init.map(async (name, n) => {
      const bytes = new Uint8Array(await (await fetch(`/init/${job}/${n}`)).arrayBuffer());
      return { name, bytes };
    });
    const trainer = await model.trainer({ ...train, method: { init: await Promise.all(fetched) } });
    const [losses, norms] = [[], []];
    for (let step = 0; step < steps; step += 1) {
      const { loss, norm } = await trainer.step();
      losses.push(loss);
      norms.push(norm);
    }
    const { loss: after } = await trainer.evaluate(train.data);
    const { bytes } = (await trainer.savePeft()).find(({ name }) => name.endsWith('.safetensors'));
    await give('safetensors', bytes);
    return done({ losses, norms, after });
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
    for (const [job, { device, ids, init, train, steps }] of request.jobs.entries()) {
      const said = await page.evaluate(compute, { job, device, ids, init, train, steps }).catch((error) => ({
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
