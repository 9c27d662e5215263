/** The turns of the open conversation, drawn at most once a frame while an answer grows. */
import type { Turn } from '../store/conversations.js';
import { h } from '../ui/dom.js';
import { chat } from './chat.js';
import { turnView, type TurnView } from './turn.js';

/** How near the end a reader must be for the page to follow the answer. */
const FOLLOW_PX = 80;

/** A frame; in a hidden page, which has no frames, a moment. */
function nextFrame(run: () => void): void {
  if (document.hidden) setTimeout(run, 250);
  else requestAnimationFrame(run);
}

export class Thread {
  readonly node = h('div', { class: 'thread' });
  readonly #scroller: HTMLElement;
  readonly #empty: HTMLElement;
  readonly #dirty = new Set<Turn>();
  #views: TurnView[] = [];
  #waiting = false;

  /** `empty` is shown while the conversation has no turn. */
  constructor(scroller: HTMLElement, empty: HTMLElement) {
    this.#scroller = scroller;
    this.#empty = empty;
    chat.onChange = (turn) => {
      if (turn === undefined) this.#all();
      else this.#one(turn);
    };
    this.#all();
  }

  #all(): void {
    const { turns } = chat.conversation.value;
    this.#views = turns.map((turn) => this.#views.find((view) => view.turn === turn) ?? turnView(turn));
    for (const view of this.#views) view.update();
    this.node.replaceChildren(...(turns.length === 0 ? [this.#empty] : this.#views.map(({ node }) => node)));
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #one(turn: Turn): void {
    this.#dirty.add(turn);
    if (this.#waiting) return;
    this.#waiting = true;
    nextFrame(() => {
      this.#waiting = false;
      const { scrollTop, clientHeight, scrollHeight } = this.#scroller;
      const follows = scrollTop + clientHeight > scrollHeight - FOLLOW_PX;
      for (const view of this.#views) {
        if (this.#dirty.has(view.turn)) view.update();
      }
      this.#dirty.clear();
      if (follows) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    });
  }
}
