/** A browser with pages that have the package as `weft`. */
import assert from 'node:assert/strict';
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core';
import type * as Weft from '../js/dist/index.js';
import { Server } from './server.js';

declare global {
  var weft: typeof Weft;
  /** What a test keeps in the page. */
  var kept: Record<string, any>;
}

export interface World {
  readonly browser: Browser;
  readonly server: Server;
  /** A page with storage of its own, or with the storage of another page. */
  page(context?: BrowserContext): Promise<Page>;
  close(): Promise<void>;
}

export async function world(): Promise<World> {
  const executablePath = process.env.BROWSER_PROGRAM ?? '/usr/bin/chromium';
  // A browser does not run its sandbox as root.
  const args = ['--disable-gpu', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
  const [browser, server] = await Promise.all([chromium.launch({ executablePath, args }), new Server().start()]);
  const page = async (context?: BrowserContext) => {
    const opened = await (context ?? (await browser.newContext())).newPage();
    opened.setDefaultTimeout(30_000);
    await opened.goto(server.url);
    await opened.waitForFunction(() => globalThis.weft !== undefined);
    await opened.evaluate(() => void (globalThis.kept = {}));
    return opened;
  };
  return { browser, server, page, close: async () => void (await Promise.all([browser.close(), server.close()])) };
}

export interface Failure {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** Runs a function in the page, and returns the error that it ends with. */
export async function failure<A>(page: Page, work: (arg: A) => Promise<unknown>, arg: A): Promise<Failure> {
  const run = ({ source, arg }: { source: string; arg: A }) =>
    (0, eval)(source)(arg).then(
      () => undefined,
      (error: Failure) => JSON.parse(JSON.stringify({ ...error, message: error.message, name: error.name })),
    );
  const error = (await page.evaluate(run as never, { source: String(work), arg })) as Failure | undefined;
  assert.ok(error, 'no error came');
  return error;
}

/** Waits until a condition of this process holds. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + 20_000; !holds(); ) {
    assert.ok(Date.now() < end, `timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A promise with its end. */
export function gate(): { readonly open: Promise<void>; readonly release: () => void } {
  let release = () => {};
  const open = new Promise<void>((resolve) => (release = resolve));
  return { open, release };
}
