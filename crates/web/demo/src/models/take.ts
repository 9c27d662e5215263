/** What dropped or picked files are: a model, an adapter, data to teach. */
import { tell, tellError } from '../ui/notice.js';
import type { Picked } from '../ui/files.js';
import { host } from './host.js';
import type { Choice } from './recent.js';

/** The first bytes of a GGUF file hold its kind. */
const HEAD_BYTES = 1 << 16;

async function isGgufAdapter(file: File): Promise<boolean> {
  const head = new TextDecoder('latin1').decode(await file.slice(0, HEAD_BYTES).arrayBuffer());
  const at = head.indexOf('general.type');
  // Behind the key: 4 bytes of the type of the value, 8 of its length, the value.
  return head.startsWith('GGUF') && at >= 0 && head.slice(at + 24, at + 31) === 'adapter';
}

function choiceOf(files: readonly Picked[]): Choice {
  const sorted = [...files].sort((a, b) => a.file.name.localeCompare(b.file.name, 'en', { numeric: true }));
  const handles = sorted.map(({ handle }) => handle).filter((handle) => handle !== undefined);
  const source = sorted.map(({ file }) => file);
  return {
    name: source[0]!.name,
    source: source.length === 1 ? source[0]! : source,
    ...(handles.length === sorted.length && { origin: { kind: 'handles' as const, handles } }),
  };
}

async function addAdapter(files: readonly File[]): Promise<void> {
  const named = files.map(async (file) => ({ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) }));
  await host.addAdapter(files[0]!.name.replace(/\.[^.]+$/, ''), await Promise.all(named));
  tell('The adapter is applied.');
}

/** Loads what the files are. The engine gets all that is no adapter, and tells what it is. */
export async function takeFiles(files: readonly Picked[]): Promise<void> {
  try {
    const adapters = files.map(({ file }) => file).filter(({ name }) => /\.(safetensors|json)$/i.test(name));
    if (adapters.length > 0) return await addAdapter(adapters);
    const first = files[0];
    if (first === undefined) return;
    if (files.length === 1 && (await isGgufAdapter(first.file))) return await addAdapter([first.file]);
    await host.load(choiceOf(files));
  } catch (error) {
    tellError(error);
  }
}
