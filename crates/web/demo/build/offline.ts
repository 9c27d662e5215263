// Tells the service worker the name of the build and the files that it keeps.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

const WORKER = 'sw.js';

/** Replaces `__BUILD__` and `__FILES__` in the service worker when all files have their names. */
export function offline(): Plugin {
  let publicDir = '';
  return {
    name: 'weft-offline',
    apply: 'build',
    enforce: 'post',
    configResolved(config) {
      publicDir = config.publicDir;
    },
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const hash = createHash('sha256');
        const files: string[] = [];
        const add = (name: string, content: string | Uint8Array) => {
          files.push(name);
          hash.update(name).update(content);
        };
        for (const [name, item] of Object.entries(bundle)) {
          if (name !== WORKER) add(name, item.type === 'chunk' ? item.code : item.source);
        }
        for (const name of readdirSync(publicDir)) add(name, readFileSync(join(publicDir, name)));

        const worker = bundle[WORKER];
        if (worker?.type !== 'chunk') this.error(`the build has no ${WORKER}`);
        hash.update(worker.code);
        worker.code = worker.code
          .replace('__BUILD__', JSON.stringify(hash.digest('hex').slice(0, 16)))
          .replace('__FILES__', JSON.stringify(files.sort()));
      },
    },
  };
}
