/** The run that outlives the page: what it learns, how far it is, and its last checkpoint. */
import type { Ended, StepRecord } from '@weft-llm/web';
import { deleteBlob, getBlob, putBlob } from '../store/blobs.js';
import { Kept } from '../store/values.js';
import type { Origin } from '../models/recent.js';
import type { Example } from './lines.js';
import type { RunOptions } from './options.js';

export interface KeptRun {
  readonly model: { readonly name: string; readonly origin?: Origin; readonly digest: string };
  readonly learnt: readonly Example[];
  readonly heldOut: readonly Example[];
  readonly options: RunOptions;
  readonly total: number;
  readonly log: readonly StepRecord[];
  /** The step of the checkpoint. */
  readonly step: number;
  /** Why the run has ended, if it has. */
  readonly ended: Ended | null;
}

const record = new Kept<KeptRun | undefined>('run', undefined);
const nameOf = (step: number) => `checkpoint-${step}`;

export const keptRun = () => record.get();

/** The record names the new checkpoint only after it is whole, and the old one goes last. */
export async function keepRun(run: KeptRun, checkpoint: Uint8Array): Promise<void> {
  const before = await record.get();
  await putBlob(nameOf(run.step), checkpoint);
  await record.set(run);
  if (before !== undefined && before.step !== run.step) await deleteBlob(nameOf(before.step));
}

export async function keptCheckpoint(run: KeptRun): Promise<Uint8Array | undefined> {
  return getBlob(nameOf(run.step));
}

export async function forgetRun(): Promise<void> {
  const run = await record.get();
  await record.clear();
  if (run !== undefined) await deleteBlob(nameOf(run.step));
}
