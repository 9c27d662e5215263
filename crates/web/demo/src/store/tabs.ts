/** Tells the other tabs of these pages which conversation was changed. */

export interface Change {
  readonly id: string;
  /** Whether an answer is under way: the text that is kept has no end yet. */
  readonly answering: boolean;
}

// Without the channel (Safari before 15.4) a tab sees the changes of others after a reload.
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('weft conversations') : undefined;

export function tellTabs(change: Change): void {
  channel?.postMessage(change);
}

export function onOtherTab(listener: (change: Change) => void): void {
  channel?.addEventListener('message', ({ data }: MessageEvent<Change>) => listener(data));
}
