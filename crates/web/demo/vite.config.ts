// How the pages are built: relative URLs, no inline code, one service worker that knows every file.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { offline } from './build/offline.ts';
import { withoutPolicy } from './build/policy.ts';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig(({ mode }) => {
  const mock = mode === 'mock';
  return {
    base: './',
    plugins: [offline(), withoutPolicy()],
    // The tests and `vite --mode mock` have canned answers in place of the engine.
    resolve: mock ? { alias: { '@weft-llm/web': path('./src/engine/mock/index.ts') } } : {},
    server: { fs: { allow: [path('../../..')] } },
    worker: { format: 'es' },
    build: {
      outDir: mock ? 'dist-mock' : 'dist',
      target: 'es2022',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rollupOptions: {
        input: { index: path('./index.html'), sw: path('./src/offline/worker.ts') },
        output: {
          entryFileNames: (chunk) => (chunk.name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js'),
        },
      },
    },
  };
});
