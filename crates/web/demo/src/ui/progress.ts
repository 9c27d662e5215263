/** The progress of the engine in words. */
import type { Progress } from '@weft-llm/web';
import { bytes, count } from './format.js';

/** A later version of the package may have more phases. */
const PHASES: Readonly<Record<string, string>> = {
  engine: 'Downloads the engine',
  wait: 'Waits for another tab',
  verify: 'Checks',
  download: 'Downloads',
  load: 'Loads',
  compile: 'Prepares the GPU',
  prompt: 'Reads the prompt',
  data: 'Checks the examples',
  digest: 'Reads the model',
  step: 'Computes',
};
const COUNTED = new Set(['compile', 'prompt', 'step']);

export function describeProgress({ phase, done, total }: Progress): string {
  const shown = COUNTED.has(phase) ? count : bytes;
  const name = PHASES[phase] ?? 'Works';
  return total > 0 ? `${name}, ${shown(done)} of ${shown(total)}` : `${name}, ${shown(done)}`;
}
