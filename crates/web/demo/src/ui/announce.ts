/** What a screen reader says: polite, and an answer by whole sentences instead of by tokens. */
import { h } from './dom.js';

/** Sentences that stay in the region. A reader has spoken the earlier ones. */
const MOST = 12;

const region = h('div', { class: 'unseen', role: 'log', 'aria-live': 'polite', 'aria-label': 'Announcements' });

export function announcer(): HTMLElement {
  return region;
}

export function announce(sentence: string): void {
  region.append(h('p', {}, sentence));
  while (region.childElementCount > MOST) region.firstElementChild?.remove();
}

/** Gives a growing text to the region, sentence by sentence. */
export class Speaker {
  #spoken = 0;

  /** `text` is everything so far. The last sentence waits for its end. */
  grow(text: string): void {
    const rest = text.slice(this.#spoken);
    const ends = [...rest.matchAll(/[.!?…](?=\s)|[。！？]|\n/g)];
    const last = ends.at(-1);
    if (last === undefined) return;
    const end = last.index + last[0].length;
    this.#say(rest.slice(0, end));
    this.#spoken += end;
  }

  end(text: string): void {
    this.#say(text.slice(this.#spoken));
    this.#spoken = text.length;
  }

  #say(text: string): void {
    const plain = text
      .replace(/[*_`#>|~]+/g, ' ')
      .replace(/\s+/g, ' ')
      .trim();
    if (/[\p{L}\p{N}]/u.test(plain)) announce(plain);
  }
}
