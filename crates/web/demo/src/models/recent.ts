/** The models that were used, so that a tab can come back to one. */
import type { Source } from '@weft-llm/web';
import { Kept } from '../store/values.js';

/** Where a model comes from, in a form that outlives the page. */
export type Origin =
  | { readonly kind: 'default' }
  | { readonly kind: 'urls'; readonly urls: readonly string[]; readonly sha256?: string }
  | { readonly kind: 'handles'; readonly handles: readonly FileSystemFileHandle[] };

export interface Choice {
  readonly name: string;
  readonly source: Source;
  /** Absent for a file that the page cannot open again. */
  readonly origin?: Origin;
  readonly sha256?: string;
}

export interface Recent {
  readonly name: string;
  readonly origin: Origin;
  readonly used: number;
}

const MOST = 8;
const kept = new Kept<readonly Recent[]>('recent models', []);

export const defaultChoice: Choice = { name: 'Default model', source: 'default', origin: { kind: 'default' } };

function keyOf(recent: Recent): string {
  const { origin } = recent;
  return origin.kind === 'urls' ? origin.urls.join(' ') : `${origin.kind} ${recent.name}`;
}

export const recentModels = () => kept.get();

export async function rememberModel(choice: Choice): Promise<void> {
  if (choice.origin === undefined) return;
  const recent: Recent = { name: choice.name, origin: choice.origin, used: Date.now() };
  const others = (await kept.get()).filter((one) => keyOf(one) !== keyOf(recent));
  await kept.set([recent, ...others].slice(0, MOST));
}

export async function forgetModel(recent: Recent): Promise<void> {
  await kept.set((await kept.get()).filter((one) => keyOf(one) !== keyOf(recent)));
}

interface PermittedHandle extends FileSystemFileHandle {
  queryPermission?(descriptor: { mode: 'read' }): Promise<PermissionState>;
  requestPermission?(descriptor: { mode: 'read' }): Promise<PermissionState>;
}

/** Whether the page may read the files. The browser asks the user only after a press (`ask`). */
async function permitted(handles: readonly PermittedHandle[], ask: boolean): Promise<boolean> {
  for (const handle of handles) {
    let state = (await handle.queryPermission?.({ mode: 'read' })) ?? 'granted';
    if (state === 'prompt' && ask) state = (await handle.requestPermission?.({ mode: 'read' })) ?? 'denied';
    if (state !== 'granted') return false;
  }
  return true;
}

/** The choice that a kept model means; nothing if the page may not read its files. */
export async function reopen({ name, origin }: Recent, ask: boolean): Promise<Choice | undefined> {
  switch (origin.kind) {
    case 'default':
      return defaultChoice;
    case 'urls': {
      const source = origin.urls.length === 1 ? origin.urls[0]! : origin.urls;
      return { name, source, origin, ...(origin.sha256 !== undefined && { sha256: origin.sha256 }) };
    }
    case 'handles': {
      if (!(await permitted(origin.handles, ask))) return undefined;
      return { name, source: origin.handles.length === 1 ? origin.handles[0]! : origin.handles, origin };
    }
  }
}
