/** Whether a model fits into the memory of the device and the space of the page. */
import type { DeviceInfo, Storage } from '@weft-llm/web';
import { bytes } from '../ui/format.js';

export interface Room {
  /** Bytes of the computer's memory, as far as the browser tells: Chromium does, in steps. */
  readonly memory: number | undefined;
  readonly storage: Storage | undefined;
  readonly devices: readonly DeviceInfo[];
}

export interface Verdict {
  readonly fits: boolean;
  readonly reason: string;
}

/** WebAssembly has 32-bit addresses; a part of them is for other things than weights. */
const MOST_CPU_BYTES = 3.8e9;
/** The share of the memory that a tab gets before the system becomes slow. */
const SHARE = 0.75;

/** What a browser without answers gives: no memory, no quota. */
export function roomOf(devices: readonly DeviceInfo[], storage: Storage | undefined): Room {
  const gigabytes = (navigator as { deviceMemory?: number }).deviceMemory;
  return { devices, storage, memory: gigabytes === undefined ? undefined : gigabytes * 2 ** 30 };
}

/** Whether a model of `size` bytes that takes `memory` bytes fits. */
export function fit(size: number, memory: number, room: Room): Verdict {
  const gpu = room.devices.some((device) => device.kind === 'gpu' && !device.fallback);
  if (!gpu && memory > MOST_CPU_BYTES) {
    return { fits: false, reason: `takes ${bytes(memory)}; without a GPU a page has ${bytes(MOST_CPU_BYTES)}` };
  }
  const { storage } = room;
  const free = storage === undefined || storage.quota === 0 ? Infinity : storage.quota - storage.used;
  if (size > free) return { fits: false, reason: `no space: the browser has ${bytes(Math.max(0, free))} left` };
  if (room.memory !== undefined && memory > room.memory * SHARE) {
    return { fits: false, reason: `takes ${bytes(memory)} of memory; this device tells ${bytes(room.memory)}` };
  }
  return { fits: true, reason: `takes ${bytes(memory)} of memory` };
}
