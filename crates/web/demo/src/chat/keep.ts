/**
 * Keeps the conversation and the session when the page is hidden, frozen or left, and brings the
 * session back. The text of a conversation is kept all the time; the session only saves reading it.
 * A tab that crashes was not hidden before: a small session is kept after each answer, too.
 */
import { host } from '../models/host.js';
import { loadSnapshot, MOST_BYTES, saveSnapshot } from '../store/snapshots.js';
import { bytes } from '../ui/format.js';
import { tell } from '../ui/notice.js';
import { chat } from './chat.js';

/** A larger session is kept only when the page is hidden. */
const SMALL_BYTES = 64e6;
/** The next question may come at once. */
const REST_MS = 1500;

/** The conversation, its number of tokens and its key at the last save. */
let saved = '';
let told = false;

/** Bytes of a snapshot with this number of tokens. */
async function expectedBytes(tokens: number): Promise<number> {
  const { ready } = host;
  if (ready === undefined) return 0;
  const { kv } = await ready.model.needs(host.sessionOptions(ready.model));
  return (kv * tokens) / ready.session.context;
}

/** Keeps the session if it has at most so many bytes. */
async function keepSession(most: number): Promise<void> {
  const { ready } = host;
  const conversation = chat.held;
  if (ready === undefined || conversation === undefined || chat.answering.value !== undefined) return;
  await host.exclusive(async () => {
    const tokens = (await ready.session.tokens()).length;
    const key = host.snapshotKey(ready.model);
    const state = `${conversation} ${tokens} ${key}`;
    if (state === saved || tokens === 0) return;
    const expected = await expectedBytes(tokens);
    if (expected > most) {
      if (!told && most === MOST_BYTES) {
        const sizes = `${bytes(expected)}; ${bytes(MOST_BYTES)} are kept`;
        tell(
          `The conversation is kept, but not what the model computed of it (${sizes}). After a reload its text is read again.`,
        );
      }
      told ||= most === MOST_BYTES;
      return;
    }
    await saveSnapshot(conversation, key, await ready.session.save());
    saved = state;
  });
}

/** Gives the session what was kept of this conversation. */
async function restoreSession(): Promise<void> {
  const { ready } = host;
  const { id } = chat.conversation.value;
  if (ready === undefined || chat.held === id || chat.answering.value !== undefined) return;
  // A question that comes meanwhile waits: it would read the whole text again.
  await host.exclusive(async () => {
    const kept = await loadSnapshot(id, host.snapshotKey(ready.model));
    if (kept === undefined || host.ready !== ready || chat.conversation.value.id !== id) return;
    try {
      await ready.session.load(kept);
      chat.held = id;
    } catch (error) {
      // The text is there, so that the session is only slower to begin.
      console.warn(error);
    }
  });
}

function quietly(work: () => Promise<void>): void {
  work().catch((error: unknown) => console.warn(error));
}

export function keepConversations(): void {
  let rest: ReturnType<typeof setTimeout> | undefined;
  const leave = () => {
    void chat.save();
    clearTimeout(rest);
    quietly(() => keepSession(MOST_BYTES));
  };
  document.addEventListener('visibilitychange', () => document.hidden && leave());
  document.addEventListener('freeze', leave);
  window.addEventListener('pagehide', leave);
  // An answer that ends in a hidden page is kept, too: the page may be discarded next.
  chat.onEnd = () => {
    clearTimeout(rest);
    if (document.hidden) quietly(() => keepSession(MOST_BYTES));
    else rest = setTimeout(() => quietly(() => keepSession(SMALL_BYTES)), REST_MS);
  };
  host.state.watch((state) => {
    if (state.kind !== 'ready') chat.held = undefined;
    else quietly(restoreSession);
  });
  chat.conversation.watch(() => quietly(restoreSession));
}
