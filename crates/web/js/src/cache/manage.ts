/** Checking and deleting files of the cache. */
import type { Engine } from '../engine.js';
import { WeftError } from '../error.js';
import { BlobPart } from '../sources/blob-part.js';
import { digestOf } from '../sources/digest.js';
import { nameOf } from '../sources/http.js';
import type { Verified } from '../types.js';
import type { Call } from '../worker/call.js';
import { type Folder, openFolder } from './folder.js';
import { type Release, lock } from './lock.js';
import { keyOf, readRecord, removeFile, wholeFile } from './record.js';

async function folder(): Promise<Folder> {
  const opened = await openFolder();
  if ('folder' in opened) return opened.folder;
  throw new WeftError('unsupported', `there is no cache: ${opened.missing}`);
}

async function locked(url: string, key: string, mode: LockMode): Promise<Release> {
  const release = await lock(key, { mode, ifAvailable: true });
  if (release !== undefined) return release;
  throw new WeftError('busy', `${nameOf(url)} is loaded now, in this tab or in another; wait for the end, or close that tab`, { url });
}

function absent(url: string): WeftError {
  return new WeftError('read', `the cache has no whole file of ${url}; load it first`, { url });
}

/** Deletes a file, or what an interrupted download left. */
export async function deleteCached(url: string): Promise<void> {
  const [files, key] = [await folder(), await keyOf(url)];
  const release = await locked(url, key, 'exclusive');
  await removeFile(files, key).finally(release);
}

/** Hashes a file again. A damaged file is deleted, so that the next load downloads it. */
export async function verifyCached(engine: Engine, url: string, call: Call): Promise<Verified> {
  const [files, key] = [await folder(), await keyOf(url)];
  const release = await locked(url, key, 'exclusive');
  try {
    const record = await readRecord(files, key);
    const expected = record?.sha256;
    if (expected === undefined) throw absent(url);
    const file = await wholeFile(files, key);
    const found = await digestOf(engine, new BlobPart(nameOf(url), file?.data ?? new Blob()), call.report, call.signal);
    const whole = found === expected;
    if (!whole) await removeFile(files, key);
    return { url, whole, found, expected };
  } finally {
    release();
  }
}
