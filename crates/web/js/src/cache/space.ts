/** The space that the browser gives this page. */
import { WeftError } from '../error.js';
import type { CachedFile, Storage } from '../types.js';
import { openFolder } from './folder.js';
import { allRecords, described } from './record.js';

/** Space that stays free: the browser refuses the last bytes. */
const SPARE_BYTES = 8 << 20;

const GIGABYTE = 1e9;

export async function storage(): Promise<Omit<Storage, 'persistent'>> {
  const { usage = 0, quota = 0 } = (await navigator.storage?.estimate?.()) ?? {};
  return { used: usage, quota };
}

/** The files of the cache, the one that was used last first. */
export async function cachedFiles(): Promise<CachedFile[]> {
  const opened = await openFolder();
  if ('missing' in opened) return [];
  const files = (await allRecords(opened.folder)).map(({ record }) => described(record));
  return files.sort((a, b) => b.used - a.used);
}

/** An error if the cache has no space for so many bytes more. It names files that could go. */
export async function checkSpace(needed: number): Promise<void> {
  if (needed === 0) return;
  const { used, quota } = await storage();
  // Safari before 17 does not tell: the write itself fails if there is no space.
  if (quota === 0) return;
  const available = Math.max(0, quota - used);
  if (needed + SPARE_BYTES <= available) return;
  const oldest = (await cachedFiles()).reverse();
  const candidates: string[] = [];
  let freed = 0;
  for (const { url, present } of oldest) {
    if (available + freed >= needed + SPARE_BYTES) break;
    candidates.push(url);
    freed += present;
  }
  const way = candidates.length > 0 ? `delete ${candidates.length === 1 ? 'the file' : `the ${candidates.length} files`} of the cache that ${candidates.length === 1 ? 'was' : 'were'} not used for the longest time` : 'free space on the disk';
  const text = (bytes: number) => `${(bytes / GIGABYTE).toFixed(2)} GB`;
  throw new WeftError('quota', `the file needs ${text(needed)} of space, and the browser gives this page ${text(available)} more; ${way}, or load with \`cache: 'none'\``, { needed, available, candidates });
}
