/** What a person chose. A number that was not chosen is the engine's default. */
import type { DeviceChoice, KvType } from '@weft-llm/web';
import { Signal } from '../ui/signal.js';
import { Kept } from './values.js';

export interface Settings {
  readonly system?: string;
  readonly temperature?: number;
  readonly topK?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly maxTokens?: number;
  readonly context?: number;
  readonly kv?: KvType;
  readonly device?: DeviceChoice;
  readonly thinking?: boolean;
  /** Texts that end an answer, one a line. */
  readonly stops?: string;
  /** A JSON list of tools. */
  readonly tools?: string;
}

const kept = new Kept<Settings>('settings', {});

export const settings = new Signal<Settings>({});

export async function readSettings(): Promise<void> {
  settings.value = await kept.get();
}

export async function changeSettings(change: Settings): Promise<void> {
  const entries = Object.entries({ ...settings.value, ...change });
  settings.value = Object.fromEntries(entries.filter(([, value]) => value !== undefined && value !== '')) as Settings;
  await kept.set(settings.value);
}

/** The tools of the settings, or an error whose message tells how to write them. */
export function parseTools(text: string | undefined): unknown[] {
  if (text === undefined || text.trim() === '') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Error(`The tools are not JSON: ${(error as Error).message}.`);
  }
  const isTool = (tool: unknown) =>
    typeof (tool as { function?: { name?: unknown } } | null)?.function?.name === 'string';
  if (!Array.isArray(parsed) || !parsed.every(isTool)) {
    throw new Error('Tools are a list like [{"type": "function", "function": {"name": "..", "parameters": {}}}].');
  }
  return parsed;
}
