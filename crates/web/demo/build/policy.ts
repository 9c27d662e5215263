// Vite's development server injects styles and a socket, which the policy of the pages forbids.
import type { Plugin } from 'vite';

/** Takes the content security policy out of the page that the development server serves. */
export function withoutPolicy(): Plugin {
  return {
    name: 'weft-without-policy',
    apply: 'serve',
    transformIndexHtml: (html) => html.replace(/<meta\s+http-equiv="Content-Security-Policy"[^>]*>/s, ''),
  };
}
