/** Texts and files of the page as bytes. */
import type { NamedBytes, Text } from '../types.js';

/** The bytes of a text in UTF-8. */
export async function bytesOf(text: Text): Promise<Uint8Array> {
  if (typeof text === 'string') return new TextEncoder().encode(text);
  return text instanceof Blob ? new Uint8Array(await text.arrayBuffer()) : text;
}

/** Files of the page with their bytes. */
export function namedBytes(files: readonly (NamedBytes | File)[]): Promise<NamedBytes[]> {
  const named = async (file: NamedBytes | File) => ({
    name: file.name,
    bytes: file instanceof File ? await bytesOf(file) : file.bytes,
  });
  return Promise.all(files.map(named));
}
