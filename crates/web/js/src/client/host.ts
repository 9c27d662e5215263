/** The cache of downloaded files, and the devices of the browser. */
import { WeftError } from '../error.js';
import type { CachedFile, DeviceInfo, Storage, Verified, Work } from '../types.js';
import { callHost } from './connection.js';

/** A file of the cache, or its address. */
type Cached = CachedFile | string | URL;

function urlOf(file: Cached): string {
  if (typeof file === 'string' || file instanceof URL) return new URL(file, globalThis.document?.baseURI).href;
  return file.url;
}

function manager(): StorageManager {
  const { storage } = navigator;
  if (storage === undefined) {
    throw new WeftError('unsupported', 'this browser keeps no files for this page; serve the page by https, and leave private windows');
  }
  return storage;
}

/** The files that were downloaded into the browser's private file system. */
export const cache = {
  /** The files, the one that was used last first. */
  list(): Promise<CachedFile[]> {
    return callHost('cachedFiles', []);
  },

  /** Hashes a file again. A damaged file is not used any more: the next load downloads it. */
  async verify(file: Cached, work?: Work): Promise<Verified> {
    return callHost('verifyCached', [urlOf(file)], work);
  },

  /** Deletes a file, or what an interrupted download left. */
  async delete(file: Cached): Promise<void> {
    await callHost('deleteCached', [urlOf(file)]);
  },

  /** The space of this page. */
  async storage(): Promise<Storage> {
    const [space, persistent] = await Promise.all([callHost('storage', []), manager().persisted?.()]);
    return { ...space, persistent: persistent ?? false };
  },

  /** Asks the browser never to delete the files by itself. Returns whether it agreed. */
  async persist(): Promise<boolean> {
    return (await manager().persist?.()) ?? false;
  },
};

/** What a model can compute on. */
export function devices(): Promise<DeviceInfo[]> {
  return callHost('devices', []);
}
