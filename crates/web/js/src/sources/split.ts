/** Models in several files, named `NAME-00001-of-00003.gguf`. */
import { WeftError } from '../error.js';

const PART = /-(\d{5})-of-(\d{5})(\.gguf)$/i;

/** The most parts that a model may have. */
const MOST = 1000;

interface Place {
  readonly number: number;
  readonly count: number;
}

function placeOf(name: string): Place | undefined {
  const found = PART.exec(name);
  return found ? { number: Number(found[1]), count: Number(found[2]) } : undefined;
}

/** The addresses of all parts, from the address of one. */
export function allParts(address: string): string[] {
  const url = new URL(address);
  const place = placeOf(url.pathname);
  if (place === undefined || place.count < 1 || place.count > MOST) return [address];
  return Array.from({ length: place.count }, (_, index) => {
    const part = new URL(url);
    part.pathname = url.pathname.replace(PART, (_all, _number, count: string, end: string) => `-${String(index + 1).padStart(5, '0')}-of-${count}${end}`);
    return part.href;
  });
}

/** Files in the order of their numbers. An error if a part is missing. */
export function inOrder<T extends { readonly name: string }>(files: readonly T[]): T[] {
  const first = files[0] && placeOf(files[0].name);
  if (first === undefined) return [...files];
  const numbered = files.map((file) => ({ file, number: placeOf(file.name)?.number ?? 0 })).sort((a, b) => a.number - b.number);
  const missing = Array.from({ length: first.count }, (_, index) => index + 1).find((number) => !numbered.some((one) => one.number === number));
  if (missing !== undefined) {
    throw new WeftError('bad-file', `the model has ${first.count} files, and number ${missing} is missing; choose all ${first.count} together`, { missing, count: first.count });
  }
  return numbered.map(({ file }) => file);
}
