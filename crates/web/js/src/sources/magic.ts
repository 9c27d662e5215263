/** The first bytes of a file, which tell whether it is a GGUF file. */
import { WeftError } from '../error.js';

const MAGIC = 'GGUF';

/** Bytes that a message shows. */
const SHOWN = 24;

/** The bytes that a GGUF file begins with. */
export const MAGIC_BYTES = MAGIC.length;

function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, SHOWN)).replace(/[^\x20-\x7e]+/g, ' ').trim();
}

/** An error if these first bytes are of another kind of file. They may be fewer than four. */
export function checkMagic(name: string, bytes: Uint8Array): void {
  const start = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  if (start !== '' && MAGIC.startsWith(start)) return;
  const shown = textOf(bytes);
  const page = /^\s*<(!doctype|html|head|\?xml)/i.test(shown);
  const what = bytes.length === 0 ? 'is empty' : page ? 'is a web page' : `begins with "${shown}"`;
  const way = page ? 'give the address of the file itself, not of the page about it' : 'choose a file whose name ends with .gguf';
  throw new WeftError('not-gguf', `${name} is no GGUF file: it ${what}; ${way}`, { start: shown });
}

/** Whether the error says that a file is of another kind, and not worth to be kept. */
export function isNoModel(error: unknown): boolean {
  return error instanceof WeftError && error.code === 'not-gguf';
}
