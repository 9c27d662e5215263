/** DOM nodes without markup: texts are only ever text, and no attribute holds code or style. */

export type Child = Node | string | number | null | undefined | false;

type Handler = (event: never) => unknown;
type Value = string | number | boolean | null | undefined | Handler;
export type Props = Readonly<Record<string, Value>>;

/** Keys that are properties of the node, because their attribute means something else. */
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'open', 'indeterminate']);

function assign(node: Element, key: string, value: Value): void {
  if (typeof value === 'function') {
    node.addEventListener(key.slice(2), value as unknown as EventListener);
  } else if (PROPERTIES.has(key) && node instanceof HTMLElement) {
    Object.assign(node, { [key]: value });
  } else if (value === true) {
    node.setAttribute(key, '');
  } else if (value !== false && value !== null && value !== undefined) {
    node.setAttribute(key, String(value));
  }
}

function fill(node: Element, props: Props, children: readonly Child[]): void {
  for (const child of children) {
    if (child instanceof Node) node.append(child);
    else if (typeof child === 'string' || typeof child === 'number') node.append(String(child));
  }
  // After the children: the value of a `select` names one of its options.
  for (const [key, value] of Object.entries(props)) assign(node, key, value);
}

/** An element. A key that begins with `on` and holds a function is an event. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  fill(node, props, children);
  return node;
}

/** An element of a picture. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill(node, props, children);
  return node;
}

/** Shows or hides an element, for every reader of the page. */
export function show(node: HTMLElement, shown: boolean): void {
  node.hidden = !shown;
}

let count = 0;

/** An id that no other element has. */
export function freshId(stem: string): string {
  count += 1;
  return `${stem}-${count}`;
}
