/**
 * Large bytes (snapshots, checkpoints): files of the browser's private file system, and rows of the
 * database where a page cannot write such files (Safari before version 26).
 */
import { Table } from './database.js';

const FOLDER = 'pages';
const rows = new Table<Uint8Array>('blobs');

async function folder(): Promise<FileSystemDirectoryHandle | undefined> {
  if (!('createWritable' in (globalThis.FileSystemFileHandle?.prototype ?? {}))) return undefined;
  try {
    const root = await navigator.storage.getDirectory();
    return await root.getDirectoryHandle(FOLDER, { create: true });
  } catch {
    return undefined;
  }
}

/** Writes the bytes whole or not at all: the file takes its new content when the stream closes. */
export async function putBlob(name: string, bytes: Uint8Array): Promise<void> {
  const files = await folder();
  if (files === undefined) return rows.put(name, bytes);
  const stream = await (await files.getFileHandle(name, { create: true })).createWritable();
  try {
    await stream.write(bytes as Uint8Array<ArrayBuffer>);
    await stream.close();
  } catch (error) {
    await stream.abort().catch(() => {});
    throw error;
  }
}

export async function getBlob(name: string): Promise<Uint8Array | undefined> {
  const files = await folder();
  if (files === undefined) return rows.get(name);
  try {
    const file = await (await files.getFileHandle(name)).getFile();
    return file.size > 0 ? new Uint8Array(await file.arrayBuffer()) : undefined;
  } catch {
    return undefined;
  }
}

export async function deleteBlob(name: string): Promise<void> {
  const files = await folder();
  if (files === undefined) return rows.delete(name);
  await files.removeEntry(name).catch(() => {});
}
