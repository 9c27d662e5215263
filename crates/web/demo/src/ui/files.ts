/** Files that come in (picked, dropped, pasted) and go out (downloads). */
import { h } from './dom.js';

/** A file, with its handle where the browser has handles: a handle opens the file again later. */
export interface Picked {
  readonly file: File;
  readonly handle?: FileSystemFileHandle;
}

interface PickerWindow {
  showOpenFilePicker?(options: { multiple: boolean }): Promise<FileSystemFileHandle[]>;
}

/** Lets the user pick files. Firefox and Safari have no handles and get the form's own picker. */
export async function pickFiles(accept: string): Promise<Picked[]> {
  const picker = (window as PickerWindow).showOpenFilePicker;
  if (picker === undefined) return pickByForm(accept);
  try {
    const handles = await picker.call(window, { multiple: true });
    return await Promise.all(handles.map(async (handle) => ({ file: await handle.getFile(), handle })));
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return [];
    throw error;
  }
}

function pickByForm(accept: string): Promise<Picked[]> {
  return new Promise((resolve) => {
    const input = h('input', { type: 'file', multiple: true, accept });
    input.addEventListener('change', () => resolve([...(input.files ?? [])].map((file) => ({ file }))));
    input.addEventListener('cancel', () => resolve([]));
    input.click();
  });
}

/** The files of a drop. The handles must be asked for before the event ends. */
async function dropped(transfer: DataTransfer): Promise<Picked[]> {
  const items = [...transfer.items].filter((item) => item.kind === 'file');
  const pending = items.map((item) => {
    const file = item.getAsFile();
    const handle = (item as { getAsFileSystemHandle?: () => Promise<FileSystemHandle | null> })
      .getAsFileSystemHandle?.()
      .catch(() => null);
    return { file, handle };
  });
  const picked = pending.map(async ({ file, handle }): Promise<Picked | undefined> => {
    if (file === null) return undefined;
    const found = await handle;
    return found?.kind === 'file' ? { file, handle: found as FileSystemFileHandle } : { file };
  });
  return (await Promise.all(picked)).filter((one) => one !== undefined);
}

/** Makes a part of the page take files. */
export function acceptDrops(zone: HTMLElement, take: (files: Picked[]) => void): void {
  const holds = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
  let inside = 0;
  const mark = (change: number) => {
    inside = Math.max(0, inside + change);
    zone.classList.toggle('dropping', inside > 0);
  };
  zone.addEventListener('dragenter', (event) => holds(event) && mark(1));
  zone.addEventListener('dragleave', (event) => holds(event) && mark(-1));
  zone.addEventListener('dragover', (event) => {
    if (holds(event)) event.preventDefault();
  });
  zone.addEventListener('drop', (event) => {
    if (!holds(event) || event.defaultPrevented || event.dataTransfer === null) return;
    event.preventDefault();
    inside = 0;
    mark(0);
    void dropped(event.dataTransfer).then((files) => files.length > 0 && take(files));
  });
}

/** Hands a file to the user. */
export function download(name: string, content: Blob | string | Uint8Array, type = 'application/octet-stream'): void {
  const blob = content instanceof Blob ? content : new Blob([content as BlobPart], { type });
  const url = URL.createObjectURL(blob);
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A title as the name of a file. */
export function fileName(title: string, ending: string): string {
  const stem = title
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 60);
  return `${stem || 'weft'}.${ending}`;
}
