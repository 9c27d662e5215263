/** Keeps the steps of a run when the page is hidden, and asks before they are lost. */
import { run } from './run.js';

/** The browser asks before the page is left with steps that no checkpoint has. */
const askToStay = (event: BeforeUnloadEvent): void => {
  event.preventDefault();
  run.checkpointSoon();
};

export function guardRun(): void {
  document.addEventListener('visibilitychange', () => document.hidden && run.checkpointSoon());
  // A listener that is always there would keep the page out of the browser's back-forward cache.
  run.unkept.watch((unkept) => {
    if (unkept) window.addEventListener('beforeunload', askToStay);
    else window.removeEventListener('beforeunload', askToStay);
  });
}
