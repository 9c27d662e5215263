/** What is known of a file of the cache: a JSON file beside the data. */
import type { Identity } from '../sources/http.js';
import type { CachedFile } from '../types.js';
import type { Folder } from './folder.js';

const VERSION = 1;

export interface FileRecord {
  readonly version: typeof VERSION;
  readonly url: string;
  /** Bytes of the whole file, if the server told. */
  readonly length?: number;
  readonly etag?: string;
  readonly lastModified?: string;
  /** Bytes from the start on that are stored and hashed. */
  readonly position: number;
  /** State of SHA-256 after these bytes, in base64. */
  readonly hash: string;
  /** Whether all bytes are there. It is written last. */
  readonly whole: boolean;
  /** SHA-256 of a whole file. */
  readonly sha256?: string;
  /** Milliseconds since 1970. */
  readonly used: number;
}

/** The name under which files of an address are kept. */
export async function keyOf(url: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url)));
  return Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const RECORD = '.json';

export const dataName = (key: string) => `${key}.gguf`;
const recordName = (key: string) => `${key}${RECORD}`;

function isRecord(value: unknown): value is FileRecord {
  const { version, url, position, hash, whole, used } = (value ?? {}) as Partial<FileRecord>;
  return version === VERSION && typeof url === 'string' && typeof position === 'number' && typeof hash === 'string' && typeof whole === 'boolean' && typeof used === 'number';
}

/** A record, or nothing if there is none that can be read. */
export async function readRecord(folder: Folder, key: string): Promise<FileRecord | undefined> {
  try {
    const file = await folder.read(recordName(key));
    const value: unknown = file && JSON.parse(await file.text());
    return isRecord(value) ? value : undefined;
  } catch {
    // It was torn, or is written now: what it tells cannot be relied on.
    return undefined;
  }
}

export function writeRecord(folder: Folder, key: string, record: FileRecord): Promise<void> {
  return folder.write(recordName(key), JSON.stringify(record));
}

/** Removes a file and its record. The record goes last: without data it tells of no file. */
export async function removeFile(folder: Folder, key: string): Promise<void> {
  await folder.remove(dataName(key));
  await folder.remove(recordName(key));
}

/** The data of a whole file with its record, or nothing if the file is not whole. */
export async function wholeFile(folder: Folder, key: string): Promise<{ record: FileRecord; data: File } | undefined> {
  const record = await readRecord(folder, key);
  if (!record?.whole) return undefined;
  const data = await folder.read(dataName(key));
  return data !== undefined && data.size === record.length ? { record, data } : undefined;
}

export function identityOf({ length, etag, lastModified }: FileRecord): Identity {
  return { length, etag, lastModified };
}

/** Whether a download that was interrupted is of the file that the server has now. */
export function isResumable(record: FileRecord, now: Identity, isChecked: boolean): boolean {
  const { length, etag, lastModified } = record;
  const agree = (before: string | undefined, after: string | undefined) => before === after || before === undefined || after === undefined;
  const isKnown = (etag !== undefined && etag === now.etag) || (lastModified !== undefined && lastModified === now.lastModified);
  return length === now.length && agree(etag, now.etag) && agree(lastModified, now.lastModified) && (isKnown || isChecked);
}

export function bytesOfHash({ hash }: FileRecord): Uint8Array {
  return Uint8Array.from(atob(hash), (char) => char.charCodeAt(0));
}

export function hashText(state: Uint8Array): string {
  return btoa(String.fromCharCode(...state));
}

/** All records. */
export async function allRecords(folder: Folder): Promise<{ key: string; record: FileRecord }[]> {
  const keys = (await folder.names()).filter((name) => name.endsWith(RECORD)).map((name) => name.slice(0, -RECORD.length));
  const records = keys.map(async (key) => ({ key, record: await readRecord(folder, key) }));
  return (await Promise.all(records)).flatMap(({ key, record }) => (record ? [{ key, record }] : []));
}

export function described({ url, length, position, whole, sha256, used }: FileRecord): CachedFile {
  return { url, bytes: length ?? 0, present: position, whole, ...(sha256 !== undefined && { sha256 }), used };
}
