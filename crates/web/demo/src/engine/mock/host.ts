/** The mock's cache of files, which a reload keeps, and its devices. */
import type { CachedFile, DeviceInfo, Storage } from '../../../../js/src/types.js';
import { has } from './behaviour.js';

const KEY = 'mock cache';

function read(): CachedFile[] {
  return JSON.parse(localStorage.getItem(KEY) ?? '[]') as CachedFile[];
}

export function remember(file: CachedFile): void {
  const others = read().filter(({ url }) => url !== file.url);
  localStorage.setItem(KEY, JSON.stringify([...others, file]));
}

export const cache = {
  async list(): Promise<CachedFile[]> {
    return read();
  },
  async delete(url: string): Promise<void> {
    localStorage.setItem(KEY, JSON.stringify(read().filter((file) => file.url !== url)));
  },
  async persist(): Promise<boolean> {
    return false;
  },
  async storage(): Promise<Storage> {
    return { used: read().reduce((sum, file) => sum + file.present, 0), quota: 6e9, persistent: false };
  },
};

export async function devices(): Promise<DeviceInfo[]> {
  const cpu = { name: 'wasm32', kind: 'cpu', fallback: false, maxBufferBytes: 2 ** 32 } as DeviceInfo;
  const gpu = { name: 'mock gpu', kind: 'gpu', fallback: false, maxBufferBytes: 2 ** 31 } as DeviceInfo;
  return has('gpu') ? [gpu, cpu] : [cpu];
}
