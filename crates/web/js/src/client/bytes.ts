/** Texts and files of the page as bytes. */
import type { Text } from '../types.js';

/** The bytes of a text in UTF-8. */
export async function bytesOf(text: Text): Promise<Uint8Array> {
  if (typeof text === 'string') return new TextEncoder().encode(text);
  return text instanceof Blob ? new Uint8Array(await text.arrayBuffer()) : text;
}
