/**
 * Keeps the conversation and the session when the page is hidden, frozen or left, and brings the
 * session back. The text of a conversation is kept all the time; the session only saves reading it.
 */
import { host } from '../models/host.js';
import { loadSnapshot, MOST_BYTES, saveSnapshot } from '../store/snapshots.js';
import { bytes } from '../ui/format.js';
import { tell } from '../ui/notice.js';
import { chat } from './chat.js';

/** The conversation and its number of tokens at the last save. */
let saved = '';
let told = false;

/** Bytes of a snapshot with this number of tokens. */
async function expectedBytes(tokens: number): Promise<number> {
  const { ready } = host;
  if (ready === undefined) return 0;
  const { kv } = await ready.model.needs(host.sessionOptions(ready.model));
  return (kv * tokens) / ready.session.context;
}

async function keepSession(): Promise<void> {
  const { ready } = host;
  const conversation = chat.held;
  if (ready === undefined || conversation === undefined || chat.answering.value !== undefined) return;
  await host.exclusive(async () => {
    const tokens = (await ready.session.tokens()).length;
    const state = `${conversation} ${tokens}`;
    if (state === saved || tokens === 0) return;
    const expected = await expectedBytes(tokens);
    if (expected > MOST_BYTES) {
      if (!told) {
        const sizes = `${bytes(expected)}; ${bytes(MOST_BYTES)} are kept`;
        tell(
          `The conversation is kept, but not what the model computed of it (${sizes}). After a reload its text is read again.`,
        );
      }
      told = true;
      return;
    }
    await saveSnapshot(conversation, host.snapshotKey(ready.model), await ready.session.save());
    saved = state;
  });
}

/** Gives the session what was kept of this conversation. */
async function restoreSession(): Promise<void> {
  const { ready } = host;
  const { id } = chat.conversation.value;
  if (ready === undefined || chat.held === id || chat.answering.value !== undefined) return;
  const kept = await loadSnapshot(id, host.snapshotKey(ready.model));
  if (kept === undefined) return;
  await host.exclusive(async () => {
    if (host.ready !== ready || chat.held === id) return;
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
  const leave = () => {
    void chat.save();
    quietly(keepSession);
  };
  document.addEventListener('visibilitychange', () => document.hidden && leave());
  document.addEventListener('freeze', leave);
  window.addEventListener('pagehide', leave);
  // An answer that ends in a hidden page is kept, too: the page may be discarded next.
  chat.onEnd = () => document.hidden && quietly(keepSession);
  host.state.watch((state) => {
    if (state.kind !== 'ready') chat.held = undefined;
    else quietly(restoreSession);
  });
  chat.conversation.watch(() => quietly(restoreSession));
}
