/**
 * Snapshots of sessions, by conversation: with one, a conversation goes on without reading its text
 * again. All snapshots together take at most `MOST_BYTES`; the oldest ones go first.
 */
import { deleteBlob, getBlob, putBlob } from './blobs.js';
import { Kept } from './values.js';

export const MOST_BYTES = 256e6;

interface Entry {
  readonly conversation: string;
  /** The model and the settings that the session was made with. */
  readonly key: string;
  readonly bytes: number;
}

const entries = new Kept<readonly Entry[]>('snapshots', []);
const nameOf = (conversation: string) => `snapshot-${conversation}`;

export async function saveSnapshot(conversation: string, key: string, bytes: Uint8Array): Promise<void> {
  const kept = (await entries.get()).filter((entry) => entry.conversation !== conversation);
  let total = bytes.length;
  const stays = kept.filter((entry) => (total += entry.bytes) <= MOST_BYTES);
  for (const entry of kept) {
    if (!stays.includes(entry)) await deleteBlob(nameOf(entry.conversation));
  }
  await putBlob(nameOf(conversation), bytes);
  await entries.set([{ conversation, key, bytes: bytes.length }, ...stays]);
}

export async function loadSnapshot(conversation: string, key: string): Promise<Uint8Array | undefined> {
  const entry = (await entries.get()).find((one) => one.conversation === conversation && one.key === key);
  return entry && getBlob(nameOf(conversation));
}

export async function deleteSnapshot(conversation: string): Promise<void> {
  await entries.set((await entries.get()).filter((entry) => entry.conversation !== conversation));
  await deleteBlob(nameOf(conversation));
}
