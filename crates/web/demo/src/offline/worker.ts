/**
 * The service worker: keeps the files of one build, the engine and the default model among them, so
 * that the pages work without a network. It answers for its own folder only and asks no other host.
 */
export {};

declare const __BUILD__: string;
declare const __FILES__: readonly string[];
declare const self: ServiceWorkerGlobalScope;

interface ServiceWorkerGlobalScope {
  readonly registration: ServiceWorkerRegistration;
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: 'install' | 'activate', listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}
interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

/** Pages of several folders of one host share its caches, so the folder is in the name. */
const FAMILY = `weft ${self.registration.scope} `;
const CURRENT = FAMILY + __BUILD__;
const HOME = new URL('index.html', self.registration.scope).href;
const FILES = new Set(__FILES__.map((file) => new URL(file, self.registration.scope).href));

/** The caches of this folder, oldest first. */
const builds = async () => (await caches.keys()).filter((name) => name.startsWith(FAMILY));

self.addEventListener('install', (event) => {
  // `reload` passes the browser's HTTP cache, which may hold files of an earlier build.
  const requests = [...FILES].map((url) => new Request(url, { cache: 'reload' }));
  event.waitUntil(caches.open(CURRENT).then((cache) => cache.addAll(requests)));
});

self.addEventListener('activate', (event) => {
  const clean = async () => {
    // A page of the build before may still be open in another tab and ask for its files.
    const earlier = (await builds()).filter((name) => name !== CURRENT).slice(0, -1);
    await Promise.all(earlier.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clean());
});

self.addEventListener('message', (event) => {
  if (event.data === 'take over') void self.skipWaiting();
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET' || !request.url.startsWith(self.registration.scope)) return;
  event.respondWith(answer(request));
});

async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  url.search = '';
  url.hash = '';
  const wanted = url.href === self.registration.scope ? HOME : url.href;
  const kept = await find(wanted);
  if (kept === undefined) return fetch(request);
  const range = request.headers.get('range');
  return range === null ? kept : part(kept, range);
}

async function find(url: string): Promise<Response | undefined> {
  const current = await (await caches.open(CURRENT)).match(url);
  if (current !== undefined) return current;
  for (const name of (await builds()).reverse()) {
    const earlier = await (await caches.open(name)).match(url);
    if (earlier !== undefined) return earlier;
  }
  return undefined;
}

/** The bytes of one range, as a server gives them. Other headers than `first-last` get the file. */
async function part(whole: Response, range: string): Promise<Response> {
  const found = /^bytes=(\d+)-(\d*)$/.exec(range.trim());
  if (found === null) return whole;
  const body = await whole.blob();
  const first = Number(found[1]);
  const last = Math.min(found[2] ? Number(found[2]) : Infinity, body.size - 1);
  if (first > last) {
    return new Response(null, { status: 416, headers: { 'content-range': `bytes */${body.size}` } });
  }
  const headers = new Headers(whole.headers);
  headers.set('content-range', `bytes ${first}-${last}/${body.size}`);
  headers.set('content-length', String(last - first + 1));
  return new Response(body.slice(first, last + 1), { status: 206, headers });
}
