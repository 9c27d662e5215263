/** The pictures of buttons: lines on a grid of 24 that screen readers leave out. */
import { svg } from './dom.js';

const PATHS = {
  add: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v11H9zM15 9V4H5v11h4',
  down: 'M6 9l6 6 6-6',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  menu: 'M4 7h16M4 12h16M4 17h16',
  retry: 'M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5',
  send: 'M12 19V6M6 12l6-6 6 6',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4v6M9 14v6',
  stop: 'M7 7h10v10H7z',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
} as const;

export type Icon = keyof typeof PATHS;

export function icon(name: Icon): SVGSVGElement {
  const path = svg('path', { d: PATHS[name] });
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false' }, path);
}
