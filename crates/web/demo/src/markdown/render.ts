/** Markdown as nodes of the page. Every text is a text node. A growing answer changes its end. */
import { h } from '../ui/dom.js';
import { icon } from '../ui/icons.js';
import { parseBlocks, type Block, type Item } from './blocks.js';
import { parseInline, type Inline } from './inline.js';

function inlineNode(node: Inline): Node {
  switch (node.kind) {
    case 'text':
      return document.createTextNode(node.text);
    case 'code':
      return h('code', {}, node.text);
    case 'break':
      return h('br');
    case 'link':
      return h('a', { href: node.url, rel: 'noopener noreferrer', target: '_blank' }, ...node.children.map(inlineNode));
    default:
      return h(node.kind, {}, ...node.children.map(inlineNode));
  }
}

const inline = (text: string) => parseInline(text).map(inlineNode);

function codeBlock(language: string, text: string): HTMLElement {
  const label = h('span', { class: 'code-language' }, language.split(/\s/)[0] || 'text');
  const copy: HTMLButtonElement = h(
    'button',
    {
      type: 'button',
      class: 'small bare',
      onclick: async () => {
        await navigator.clipboard.writeText(text);
        said.textContent = 'Copied';
        setTimeout(() => (said.textContent = 'Copy'), 1500);
      },
    },
    icon('copy'),
  );
  const said = h('span', {}, 'Copy');
  copy.append(said);
  // A code block scrolls sideways, so that the keyboard must reach it.
  const pre = h(
    'pre',
    { tabindex: 0, role: 'region', 'aria-label': `Code, ${label.textContent}` },
    h('code', {}, text),
  );
  return h('div', { class: 'code' }, h('div', { class: 'code-head' }, label, copy), pre);
}

function listItem(item: Item, loose: boolean, above: number): HTMLElement {
  const box = item.task !== undefined && h('span', { class: 'task' }, item.task ? '☑ ' : '☐ ');
  const nodes = item.blocks.flatMap((block) =>
    block.kind === 'paragraph' && !loose ? inline(block.text) : [blockNode(block, above)],
  );
  return h('li', {}, box, ...nodes);
}

/** The level of the last heading of the answer; before the first one, that of the page's title. */
function lastLevel(node: HTMLElement): number {
  const last = [...node.querySelectorAll('h2, h3, h4, h5, h6')].at(-1);
  return last === undefined ? 1 : Number(last.tagName.slice(1));
}

/** `above` is the level of the heading before the block: levels of headings never skip one. */
function blockNode(block: Block, above: number): HTMLElement {
  switch (block.kind) {
    case 'paragraph':
      return h('p', {}, ...inline(block.text));
    case 'heading':
      return h(
        `h${Math.min(block.level + 1, above + 1, 6)}` as 'h2',
        { class: `heading level-${block.level}` },
        ...inline(block.text),
      );
    case 'code':
      return codeBlock(block.language, block.text);
    case 'quote':
      return h('blockquote', {}, ...block.blocks.map((inner) => blockNode(inner, above)));
    case 'rule':
      return h('hr');
    case 'list': {
      const items = block.items.map((item) => listItem(item, block.loose, above));
      return block.start === undefined ? h('ul', {}, ...items) : h('ol', { start: block.start }, ...items);
    }
    case 'table': {
      const row = (cells: readonly string[], tag: 'th' | 'td') =>
        h(
          'tr',
          {},
          ...cells.map((cell, at) => h(tag, { class: block.align[at] && `to-${block.align[at]}` }, ...inline(cell))),
        );
      const [head, ...body] = block.rows;
      const table = h(
        'table',
        {},
        h('thead', {}, row(head!, 'th')),
        h('tbody', {}, ...body.map((cells) => row(cells, 'td'))),
      );
      return h('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Table' }, table);
    }
  }
}

/** The indent of a nested item of a list. Tabs of code stay as they are. */
const TABBED_ITEM = /^\t+(?=(?:[-*+]|\d+[.)]) )/gm;

/** Renders a text that grows. Blocks before the last one are never touched again. */
export class Markdown {
  readonly node = h('div', { class: 'markdown' });
  #lines: string[] = [];
  #source = '';
  /** The first line of the last block. */
  #open = 0;

  set(source: string): void {
    if (source === this.#source) return;
    if (!source.startsWith(this.#source)) {
      this.node.replaceChildren();
      this.#open = 0;
    }
    this.#source = source;
    this.#lines = source
      .replace(/\r\n?/g, '\n')
      .replace(TABBED_ITEM, (tabs) => '    '.repeat(tabs.length))
      .split('\n');
    const placed = parseBlocks(this.#lines.slice(this.#open));
    if (placed.length === 0) return;
    if (this.#rendered) this.node.lastElementChild!.remove();
    for (const { block } of placed) this.node.append(blockNode(block, lastLevel(this.node)));
    this.#open += placed.at(-1)!.line;
  }

  /** Whether the block at `#open` is in the page already. */
  get #rendered(): boolean {
    return this.node.lastElementChild !== null;
  }
}
