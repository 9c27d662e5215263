// Gives WGSL modules to the compiler of a browser.
// stdin: {"browser": path of a Chromium, "modules": [WGSL]}
// stdout: {"browser": version, "adapter": name, "messages": for each module [{type, line, message}]}
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';

// Runs in the page.
async function compile(modules) {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter?.features.has('subgroups')) {
    throw new Error('this browser has no WebGPU adapter with subgroups');
  }
  const device = await adapter.requestDevice({ requiredFeatures: ['subgroups'] });
  const messagesOf = async (code) => {
    device.pushErrorScope('validation');
    const info = device.createShaderModule({ code }).getCompilationInfo();
    const refused = await device.popErrorScope();
    const messages = (await info).messages.map(({ type, lineNum, message }) => ({ type, line: lineNum, message }));
    if (refused && !messages.some(({ type }) => type === 'error')) {
      messages.push({ type: 'error', line: 0, message: refused.message });
    }
    return messages;
  };
  const messages = await Promise.all(modules.map(messagesOf));
  // A device that was lost meanwhile refuses nothing: it must still refuse this.
  if ((await messagesOf('not WGSL')).length === 0) {
    throw new Error('the browser lost its WebGPU device');
  }
  return { adapter: `${adapter.info.vendor} ${adapter.info.architecture}`, messages };
}

// Modules for one page. A page of a few thousand ends for lack of memory.
const MOST = 1000;

async function run({ browser: executablePath, modules }) {
  const browser = await chromium.launch({ executablePath, args: ['--enable-unsafe-webgpu'] });
  try {
    const verdict = { browser: browser.version(), adapter: '', messages: [] };
    for (let at = 0; at < modules.length; at += MOST) {
      const page = await browser.newPage();
      // Pages have WebGPU in a secure context, as localhost is. No server runs there.
      await page.route('**', (route) => route.fulfill({ contentType: 'text/html', body: '' }));
      await page.goto('http://localhost/');
      const { adapter, messages } = await page.evaluate(compile, modules.slice(at, at + MOST));
      verdict.adapter = adapter;
      verdict.messages.push(...messages);
      await page.close();
    }
    return verdict;
  } finally {
    await browser.close();
  }
}

try {
  console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)))));
} catch (error) {
  // The log of calls repeats the browser's command line and its output.
  console.error(error.message.split('Call log:')[0].trim());
  process.exitCode = 1;
}
