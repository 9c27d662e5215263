/** The worker: takes messages of the page, calls objects, and answers. */
import { WeftError, isTrap, plain } from './error.js';
import { HOST, type Closed, type FromWorker, type ToWorker, buffersOf } from './protocol.js';
import { Call } from './worker/call.js';
import { engine } from './worker/engine.js';
import { HostObject } from './worker/host-object.js';
import { Registry, type Served } from './worker/served.js';

type Method = (call: Call, ...args: readonly unknown[]) => unknown;

/** What TypeScript's types of a page lack. */
const scope = self as unknown as { postMessage(message: FromWorker, moved: Transferable[]): void; close(): void };

const host = new HostObject();
const registry = new Registry(host, HOST);
const calls = new Map<number, Call>();

function post(message: FromWorker, moved: Transferable[] = []): void {
  scope.postMessage(message, moved);
}

host.world = { registry, post };

/** Nothing can go on. The page starts another worker. */
function end(error: unknown): void {
  post({ type: 'fatal', reason: (error as Error).message });
  scope.close();
}

function invoke(target: Served, method: string, args: readonly unknown[], call: Call): Promise<unknown> {
  const found = (target as unknown as Record<string, Method | undefined>)[method];
  if (typeof found !== 'function') throw new WeftError('internal', `the worker has no method ${method}; load the page again, so that its files are of one version`);
  const run = async () => found.call(target, call, ...args);
  // The worker itself takes calls together: each has its own files.
  return target === host ? run() : target.queue.run(run);
}

async function close(target: Served): Promise<Closed> {
  await registry.close(target);
  return { wasm: (await engine()).memoryUse().wasm };
}

async function answer({ id, target, method, args }: Extract<ToWorker, { type: 'call' }>): Promise<void> {
  const call = new Call(id, post);
  const object = registry.get(target);
  calls.set(id, call);
  try {
    if (object === undefined) throw new WeftError('closed', 'the object was closed, or its model was; make a new one');
    object.calls.add(call);
    const value = await (method === 'close' ? close(object) : invoke(object, method, args, call));
    post({ type: 'result', id, value }, [...new Set(buffersOf(value))]);
  } catch (error) {
    if (isTrap(error)) end(error);
    else post({ type: 'error', id, error: plain(error) });
  } finally {
    object?.calls.delete(call);
    calls.delete(id);
  }
}

function receive(message: ToWorker): void {
  switch (message.type) {
    case 'call':
      void answer(message);
      break;
    case 'cancel':
      calls.get(message.id)?.cancel();
      break;
    case 'free': {
      const object = registry.get(message.target);
      if (object !== undefined) registry.close(object).catch(end);
    }
  }
}

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => receive(data));
// A trap in a task of the engine ends no call: nothing would tell the page.
self.addEventListener('error', ({ error }) => isTrap(error) && end(error));
self.addEventListener('unhandledrejection', ({ reason }) => isTrap(reason) && end(reason));

/** Takes a lock that the browser gives back when the worker ends, however it ends. */
function announce(): void {
  if (navigator.locks === undefined) return post({ type: 'ready', lock: undefined });
  const lock = `weft worker ${crypto.randomUUID()}`;
  const forever = new Promise<never>(() => {});
  void navigator.locks.request(lock, () => {
    post({ type: 'ready', lock });
    return forever;
  });
}

announce();
