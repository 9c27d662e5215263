/** Data to teach as lines of JSON, with what is wrong in each line, before the engine sees them. */
import { lineOf, sentenceOf } from '../engine/errors.js';

export interface LineError {
  /** The number of the line, from 1; of a JSON list, the number of the element. */
  readonly line: number;
  readonly sentence: string;
}

/** An example and the line that it stands in. */
export interface Example {
  readonly line: number;
  readonly json: string;
}

export interface Checked {
  readonly examples: readonly Example[];
  readonly errors: readonly LineError[];
  /** What a number in an error counts. */
  readonly unit: 'Line' | 'Example';
}

/** The sets of keys that `weft train` reads; `docs/training.md` tells what is learnt of each. */
const FORMS: readonly (readonly string[])[] = [
  ['prompt', 'completion'],
  ['messages'],
  ['conversations'],
  ['instruction', 'output'],
  ['text'],
  ['ids'],
];
const NO_FORM =
  'has none of these keys: prompt and completion, messages, conversations, instruction and output, text, ids';

/** The sentence about a value that is no example. */
function wrong(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is no object in braces { }';
  const has = (key: string) => (value as Record<string, unknown>)[key] != null;
  if (FORMS.some((form) => form.every(has))) return undefined;
  const begun = FORMS.find((form) => form.some(has));
  if (begun === undefined) return NO_FORM;
  return `has "${begun.find(has)}" without "${begun.find((key) => !has(key))}"`;
}

function ofList(text: string): Checked {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    return {
      examples: [],
      errors: [{ line: 1, sentence: `begins a JSON list that is wrong: ${(error as Error).message}` }],
      unit: 'Line',
    };
  }
  const examples: Example[] = [];
  const errors: LineError[] = [];
  for (const [at, value] of (list as unknown[]).entries()) {
    const sentence = wrong(value);
    if (sentence === undefined) examples.push({ line: at + 1, json: JSON.stringify(value) });
    else errors.push({ line: at + 1, sentence });
  }
  return { examples, errors, unit: 'Example' };
}

/** Checks a text of JSON lines, or one JSON list. */
export function checkData(text: string): Checked {
  if (text.trimStart().startsWith('[')) return ofList(text);
  const examples: Example[] = [];
  const errors: LineError[] = [];
  for (const [at, raw] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    const json = raw.trim();
    if (json === '') continue;
    try {
      const sentence = wrong(JSON.parse(json));
      if (sentence === undefined) examples.push({ line: at + 1, json });
      else errors.push({ line: at + 1, sentence });
    } catch (error) {
      errors.push({ line: at + 1, sentence: `is not JSON: ${(error as Error).message}` });
    }
  }
  return { examples, errors, unit: 'Line' };
}

export interface Split {
  readonly learnt: readonly Example[];
  readonly heldOut: readonly Example[];
}

/** Holds out so many examples at equal distances. At least one example is learnt. */
export function split(examples: readonly Example[], heldOut: number): Split {
  const number = Math.max(0, Math.min(heldOut, examples.length - 1));
  const chosen = new Set(
    Array.from({ length: number }, (_, at) => Math.floor(((at + 0.5) * examples.length) / number)),
  );
  return {
    learnt: examples.filter((_, at) => !chosen.has(at)),
    heldOut: examples.filter((_, at) => chosen.has(at)),
  };
}

export function joined(examples: readonly Example[]): string {
  return examples.map(({ json }) => json).join('\n');
}

/** A refused line, or a sentence about the whole run. */
export interface Refusal {
  readonly sentence: string;
  readonly line?: number;
}

/**
 * What the engine refuses. It counts the lines that it got, and names them; a person counts the lines
 * of the whole file.
 */
export function refusalOf(error: unknown, split: Split | undefined): Refusal {
  const sentence = sentenceOf(error);
  const line = lineOf(error);
  const named = /^(data|validation), line \d+: /i.exec(sentence);
  const lines = named?.[1]?.toLowerCase() === 'validation' ? split?.heldOut : split?.learnt;
  const original = line === undefined ? undefined : lines?.[line - 1]?.line;
  if (original === undefined) return { sentence };
  const rest = sentence.slice(named?.[0].length ?? 0);
  return { line: original, sentence: rest.charAt(0).toUpperCase() + rest.slice(1) };
}
