/**
 * Inline Markdown as a tree: code, strong, emphasis, struck text, links, line breaks. Markup of
 * HTML is text. A picture is a link, so that nothing is loaded from another host.
 */

export type Inline =
  | { readonly kind: 'text' | 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'em' | 'del'; readonly children: readonly Inline[] }
  | { readonly kind: 'link'; readonly url: string; readonly children: readonly Inline[] }
  | { readonly kind: 'break' };

/** Nesting beyond this depth is text: no answer needs it, and a hostile one costs no time. */
const DEEPEST = 6;
/** The longest text of a link, and the longest address. */
const LONGEST = 2048;
const ESCAPABLE = /[!-/:-@[-`{-~]/;

/** Only addresses that a person may follow; a relative address has no meaning in an answer. */
export function safeUrl(text: string): string | undefined {
  if (!/^(https?:|mailto:)/i.test(text)) return undefined;
  try {
    return new URL(text).href;
  } catch {
    return undefined;
  }
}

export function parseInline(source: string, depth = 0, inLink = false): Inline[] {
  return depth > DEEPEST ? [{ kind: 'text', text: source }] : new Scanner(source, depth, inLink).scan();
}

class Scanner {
  readonly #source: string;
  readonly #depth: number;
  readonly #inLink: boolean;
  readonly #out: Inline[] = [];
  /** Closers that were not found. They are not searched again, so that scanning is linear. */
  readonly #absent = new Set<string>();
  #text = '';
  #at = 0;

  constructor(source: string, depth: number, inLink: boolean) {
    this.#source = source;
    this.#depth = depth;
    this.#inLink = inLink;
  }

  scan(): Inline[] {
    while (this.#at < this.#source.length) {
      if (!this.#special()) {
        this.#text += this.#source[this.#at];
        this.#at += 1;
      }
    }
    this.#flush();
    return this.#out;
  }

  #flush(): void {
    if (this.#text !== '') this.#out.push({ kind: 'text', text: this.#text });
    this.#text = '';
  }

  #push(node: Inline, end: number): true {
    this.#flush();
    this.#out.push(node);
    this.#at = end;
    return true;
  }

  #special(): boolean {
    switch (this.#source[this.#at]) {
      case '\\':
        return this.#escape();
      case '\n':
        return this.#lineBreak();
      case '`':
        return this.#code();
      case '*':
      case '_':
      case '~':
        return this.#emphasis();
      case '[':
        return this.#link(this.#at);
      case '!':
        return this.#source[this.#at + 1] === '[' && this.#link(this.#at + 1);
      case '<':
        return this.#angle();
      case 'h':
        return this.#bareUrl();
      default:
        return false;
    }
  }

  /** The position of `closer` at or behind `from`, or -1. */
  #find(closer: string, from: number): number {
    if (this.#absent.has(closer)) return -1;
    const found = this.#source.indexOf(closer, from);
    if (found < 0) this.#absent.add(closer);
    return found;
  }

  #escape(): boolean {
    const next = this.#source[this.#at + 1];
    if (next === '\n') return this.#push({ kind: 'break' }, this.#at + 2);
    if (next === undefined || !ESCAPABLE.test(next)) return false;
    this.#text += next;
    this.#at += 2;
    return true;
  }

  #lineBreak(): boolean {
    const hard = this.#text.endsWith('  ');
    this.#text = this.#text.trimEnd();
    if (hard) return this.#push({ kind: 'break' }, this.#at + 1);
    this.#text += '\n';
    this.#at += 1;
    return true;
  }

  #code(): boolean {
    const ticks = /^`+/.exec(this.#source.slice(this.#at, this.#at + 32))![0];
    const start = this.#at + ticks.length;
    let end = this.#find(ticks, start);
    while (end >= 0 && this.#source[end + ticks.length] === '`') {
      // A longer row of ticks is content.
      let after = end + ticks.length;
      while (this.#source[after] === '`') after += 1;
      end = this.#find(ticks, after);
    }
    if (end < 0) {
      this.#text += ticks;
      this.#at = start;
      return true;
    }
    const text = this.#source.slice(start, end).replace(/\n/g, ' ');
    const padded = /^ .*[^ ].* $/.test(text);
    return this.#push({ kind: 'code', text: padded ? text.slice(1, -1) : text }, end + ticks.length);
  }

  #emphasis(): boolean {
    const mark = this.#source[this.#at]!;
    const double = this.#source[this.#at + 1] === mark;
    if (mark === '~' && !double) return false;
    const closer = double ? mark + mark : mark;
    const start = this.#at + closer.length;
    const before = this.#source[this.#at - 1] ?? ' ';
    const opens = /\S/.test(this.#source[start] ?? ' ') && !(mark === '_' && /[\p{L}\p{N}]/u.test(before));
    const end = opens ? this.#closer(closer, start) : -1;
    if (end < 0) {
      this.#text += closer;
      this.#at = start;
      return true;
    }
    const children = parseInline(this.#source.slice(start, end), this.#depth + 1, this.#inLink);
    const kind = mark === '~' ? 'del' : double ? 'strong' : 'em';
    return this.#push({ kind, children }, end + closer.length);
  }

  /** The first place behind `from` where the mark closes: behind a letter, in no longer mark. */
  #closer(closer: string, from: number): number {
    const mark = closer[0]!;
    for (let end = this.#find(closer, from + 1); end >= 0; end = this.#find(closer, end + 1)) {
      const single = closer.length === 1 && (this.#source[end + 1] === mark || this.#source[end - 1] === mark);
      const after = this.#source[end + closer.length] ?? ' ';
      const inWord = mark === '_' && /[\p{L}\p{N}]/u.test(after);
      if (/\S/.test(this.#source[end - 1]!) && !single && !inWord) return end;
    }
    // No mark of this kind closes behind this place, so none closes behind a later one.
    this.#absent.add(closer);
    return -1;
  }

  /** `[text](address)`, also behind `!`. */
  #link(open: number): boolean {
    if (this.#inLink) return false;
    const middle = this.#find('](', open);
    if (middle < 0 || middle - open > LONGEST) return false;
    const end = this.#addressEnd(middle + 2);
    const inside = this.#source.slice(open + 1, middle);
    if (end < 0 || inside.includes('[')) return false;
    const address = this.#source
      .slice(middle + 2, end)
      .trim()
      .split(/\s/)[0]!
      .replace(/^<|>$/g, '');
    const url = safeUrl(address);
    const children = parseInline(inside || address, this.#depth + 1, true);
    if (url !== undefined) return this.#push({ kind: 'link', url, children }, end + 1);
    this.#flush();
    this.#out.push(...children);
    this.#at = end + 1;
    return true;
  }

  /** The closing parenthesis of an address, which may hold balanced ones. */
  #addressEnd(from: number): number {
    let open = 0;
    for (let at = from; at < Math.min(this.#source.length, from + LONGEST); at += 1) {
      const char = this.#source[at];
      if (char === '\n') return -1;
      if (char === '(') open += 1;
      if (char === ')' && open-- === 0) return at;
    }
    return -1;
  }

  #angle(): boolean {
    const end = this.#find('>', this.#at);
    const url = end < 0 || end - this.#at > LONGEST ? undefined : safeUrl(this.#source.slice(this.#at + 1, end));
    if (url === undefined || this.#inLink) return false;
    const text = this.#source.slice(this.#at + 1, end);
    return this.#push({ kind: 'link', url, children: [{ kind: 'text', text }] }, end + 1);
  }

  #bareUrl(): boolean {
    if (this.#inLink || /[\p{L}\p{N}]/u.test(this.#source[this.#at - 1] ?? ' ')) return false;
    const found = /^https?:\/\/[^\s<>"'`*]+/.exec(this.#source.slice(this.#at, this.#at + LONGEST));
    const text = found?.[0].replace(/[.,;:!?)\]]+$/, '');
    const url = text && safeUrl(text);
    if (!text || !url) return false;
    return this.#push({ kind: 'link', url, children: [{ kind: 'text', text }] }, this.#at + text.length);
  }
}
