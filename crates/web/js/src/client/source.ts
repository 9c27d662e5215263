/** The source of a model in the form that the worker gets. */
import { WeftError } from '../error.js';
import type { OpenRequest, SentSource } from '../protocol.js';
import type { LoadOptions, Source } from '../types.js';

type FileLike = Blob | FileSystemFileHandle;

function isFileLike(value: unknown): value is FileLike {
  if (value instanceof Blob) return true;
  return typeof FileSystemFileHandle === 'function' && value instanceof FileSystemFileHandle;
}

/** The model that comes with the package. */
function defaultModel(): string {
  return new URL('../default.gguf', import.meta.url).href;
}

function absolute(url: string | URL): string {
  try {
    const absolute = new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href);
    // A fragment is not sent: addresses that differ in it name one file.
    absolute.hash = '';
    return absolute.href;
  } catch {
    throw new WeftError('bad-options', `"${String(url)}" is not an address; give the whole address of a GGUF file`);
  }
}

function sentSource(source: Source): SentSource {
  if (source === 'default') return { kind: 'urls', urls: [defaultModel()] };
  if (typeof source === 'string' || source instanceof URL) return { kind: 'urls', urls: [absolute(source)] };
  if (isFileLike(source)) return { kind: 'files', files: [source] };
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) {
    // A blob is sent without a copy, and the browser may keep it on the disk.
    return { kind: 'files', files: [new Blob([source as BlobPart])] };
  }
  const list = Array.isArray(source) ? (source as readonly unknown[]) : [];
  if (list.length > 0 && list.every(isFileLike)) return { kind: 'files', files: list };
  if (list.length > 0 && list.every((one) => typeof one === 'string' || one instanceof URL)) {
    return { kind: 'urls', urls: list.map(absolute) };
  }
  throw new WeftError('bad-options', 'the source is no model; give an address, a file, its bytes, or a list of addresses or files');
}

function digests(sha256: LoadOptions['sha256']): readonly string[] {
  const list = sha256 === undefined ? [] : typeof sha256 === 'string' ? [sha256] : sha256;
  const wrong = list.find((digest) => !/^[0-9a-f]{64}$/i.test(digest));
  if (wrong !== undefined) {
    throw new WeftError('bad-options', `sha256: "${wrong}" is not a digest; give 64 hexadecimal digits`);
  }
  return list.map((digest) => digest.toLowerCase());
}

/** A source with its options, without what belongs to the call. */
export function openRequest(source: Source, options: LoadOptions): OpenRequest {
  const { device = 'auto', limits = {}, sha256 } = options;
  // The default model is a file of the page, which the page keeps as it keeps its other files.
  const cache = options.cache ?? (source === 'default' ? 'none' : 'opfs');
  if (cache !== 'opfs' && cache !== 'none') {
    throw new WeftError('bad-options', `cache: "${String(cache)}" is not "opfs" or "none"`);
  }
  return { source: sentSource(source), device, cache, limits, sha256: digests(sha256) };
}
