// Serves the built package, and what a caller adds, to pages on localhost.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../js/dist/', import.meta.url));
const TYPES = { '.js': 'text/javascript', '.wasm': 'application/wasm' };

// `more` answers a request (request, response), or returns undefined.
export async function servePackage(more = async () => undefined) {
  const answer = async (request, response) => {
    if ((await more(request, response)) !== undefined) return;
    const [, file] = /^\/package\/([\w./-]+)$/.exec(request.url) ?? [];
    if (file !== undefined && !file.includes('..')) {
      response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream' });
      response.end(await readFile(join(PACKAGE, file)));
    } else {
      response.writeHead(200, { 'Content-Type': 'text/html' });
      response.end('<!doctype html><title>package</title>');
    }
  };
  const server = createServer((request, response) => answer(request, response).catch(() => response.destroy()));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://localhost:${server.address().port}/`, close: () => server.close() };
}

// The arguments of a Chromium with WebGPU on the processor. Its sandbox does not run as root.
export const WEBGPU = [
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];
