/** Markdown as blocks: paragraphs, headings, fences, quotes, lists, tables, rules. */

export type Align = 'left' | 'center' | 'right' | undefined;

export interface Item {
  readonly blocks: readonly Block[];
  readonly task: boolean | undefined;
}

export type Block =
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'code'; readonly language: string; readonly text: string; readonly closed: boolean }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | {
      readonly kind: 'list';
      readonly start: number | undefined;
      readonly loose: boolean;
      readonly items: readonly Item[];
    }
  | { readonly kind: 'table'; readonly align: readonly Align[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: 'rule' };

/** A block and the number of the line it begins at. */
export interface Placed {
  readonly block: Block;
  readonly line: number;
}

const DEEPEST = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const BULLET = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const DELIMITER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

export function parseBlocks(lines: readonly string[], depth = 0): Placed[] {
  return new Parser(lines, depth).parse();
}

/** The cells of one row of a table. `\|` is a character of a cell. */
function cells(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

class Parser {
  readonly #lines: readonly string[];
  readonly #depth: number;
  #at = 0;

  constructor(lines: readonly string[], depth: number) {
    this.#lines = lines;
    this.#depth = depth;
  }

  parse(): Placed[] {
    const placed: Placed[] = [];
    while (this.#at < this.#lines.length) {
      const line = this.#at;
      if (this.#lines[line]!.trim() === '') this.#at += 1;
      else placed.push({ block: this.#block(), line });
    }
    return placed;
  }

  #line(at = this.#at): string {
    return this.#lines[at] ?? '';
  }

  #block(): Block {
    const line = this.#line();
    const fence = FENCE.exec(line);
    if (fence) return this.#code(fence[1]!, fence[2]!.trim());
    const heading = HEADING.exec(line);
    if (heading) {
      this.#at += 1;
      return { kind: 'heading', level: heading[1]!.length, text: heading[2] ?? '' };
    }
    if (RULE.test(line)) {
      this.#at += 1;
      return { kind: 'rule' };
    }
    const nested = this.#depth < DEEPEST;
    if (nested && QUOTE.test(line)) return this.#quote();
    if (nested && BULLET.test(line)) return this.#list();
    if (this.#isTable()) return this.#table();
    return this.#paragraph();
  }

  #code(fence: string, language: string): Block {
    const indent = this.#line().search(/\S/);
    const text: string[] = [];
    for (this.#at += 1; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line();
      const end = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line);
      if (end && end[1]![0] === fence[0] && end[1]!.length >= fence.length) {
        this.#at += 1;
        return { kind: 'code', language, text: text.join('\n'), closed: true };
      }
      text.push(line.slice(Math.min(indent, Math.max(0, line.search(/\S|$/)))));
    }
    return { kind: 'code', language, text: text.join('\n'), closed: false };
  }

  #quote(): Block {
    const inner: string[] = [];
    for (; this.#at < this.#lines.length; this.#at += 1) {
      const found = QUOTE.exec(this.#line());
      if (!found) break;
      inner.push(found[1]!);
    }
    return { kind: 'quote', blocks: parseBlocks(inner, this.#depth + 1).map(({ block }) => block) };
  }

  #list(): Block {
    const first = BULLET.exec(this.#line())!;
    const sign = first[2]!.at(-1)!;
    const start = /\d/.test(first[2]!) ? Number.parseInt(first[2]!, 10) : undefined;
    const items: Item[] = [];
    let loose = false;
    while (this.#at < this.#lines.length) {
      const found = BULLET.exec(this.#line());
      if (!found || found[2]!.at(-1) !== sign || RULE.test(this.#line())) break;
      const [inner, spaced] = this.#itemLines(found);
      loose ||= spaced;
      const task = /^\[([ xX])\]\s+/.exec(inner[0]!);
      if (task) inner[0] = inner[0]!.slice(task[0].length);
      const blocks = parseBlocks(inner, this.#depth + 1).map(({ block }) => block);
      items.push({ blocks, task: task ? task[1] !== ' ' : undefined });
    }
    return { kind: 'list', start, loose, items };
  }

  /** The lines of one item without their indent, and whether an empty line parts them. */
  #itemLines(marker: RegExpExecArray): [string[], boolean] {
    const gap = marker[3]!.length >= 1 && marker[3]!.length <= 4 ? marker[3]!.length : 1;
    const indent = marker[1]!.length + marker[2]!.length + gap;
    const inner = [marker[4]!];
    let spaced = false;
    for (this.#at += 1; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line();
      if (line.trim() === '') {
        const next = this.#line(this.#at + 1);
        const goesOn = next.search(/\S/) >= indent;
        if (!goesOn && !BULLET.test(next)) break;
        if (!goesOn) {
          spaced = true;
          this.#at += 1;
          break;
        }
        spaced = true;
        inner.push('');
      } else if (line.search(/\S/) >= Math.min(indent, 2)) {
        // Models often indent nested items by less than the text of the item.
        inner.push(line.slice(Math.min(indent, line.search(/\S/))));
      } else if (BULLET.test(line) || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) {
        break;
      } else {
        inner.push(line);
      }
    }
    return [inner, spaced];
  }

  #isTable(at = this.#at): boolean {
    const line = this.#line(at);
    if (!line.includes('|') || !DELIMITER.test(this.#line(at + 1))) return false;
    return cells(line).length === cells(this.#line(at + 1)).length;
  }

  #table(): Block {
    const head = cells(this.#line());
    const align = cells(this.#line(this.#at + 1)).map((cell): Align => {
      if (cell.endsWith(':')) return cell.startsWith(':') ? 'center' : 'right';
      return cell.startsWith(':') ? 'left' : undefined;
    });
    const rows = [head];
    for (this.#at += 2; this.#at < this.#lines.length && this.#line().includes('|'); this.#at += 1) {
      const row = cells(this.#line()).slice(0, head.length);
      while (row.length < head.length) row.push('');
      rows.push(row);
    }
    return { kind: 'table', align, rows };
  }

  #paragraph(): Block {
    const text = [this.#line().trimStart()];
    for (this.#at += 1; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line();
      const bullet = BULLET.exec(line);
      // An ordered list in a paragraph begins with 1: a year at the start of a line is text.
      const list = bullet && bullet[4] !== '' && (!/\d/.test(bullet[2]!) || /^1[.)]$/.test(bullet[2]!));
      const ends = line.trim() === '' || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
      if (ends || list || this.#isTable()) break;
      text.push(line.trimStart());
    }
    return { kind: 'paragraph', text: text.join('\n').trimEnd() };
  }
}
