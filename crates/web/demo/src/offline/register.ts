/** Registers the service worker, and offers a new build of the pages when nothing is under way. */
import { tell } from '../ui/notice.js';

/** Looks for a new build while the page is open. */
const LOOK_EVERY_MS = 3_600_000;

function offer(worker: ServiceWorker, whenIdle: (run: () => void) => void): void {
  whenIdle(() =>
    tell('A new version of these pages is there.', 'plain', {
      label: 'Reload',
      run: () => {
        navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
        worker.postMessage('take over');
      },
    }),
  );
}

/** `whenIdle` calls its argument when no answer and no run is under way. */
export async function workOffline(whenIdle: (run: () => void) => void): Promise<void> {
  if (import.meta.env.DEV || !('serviceWorker' in navigator)) return;
  const registration = await navigator.serviceWorker.register('./sw.js', { updateViaCache: 'none' });
  const offerWaiting = () => {
    const { waiting } = registration;
    // The first worker of a page waits for nothing: there is no older one.
    if (waiting && navigator.serviceWorker.controller) offer(waiting, whenIdle);
  };
  offerWaiting();
  registration.addEventListener('updatefound', () => {
    const { installing } = registration;
    installing?.addEventListener('statechange', () => installing.state === 'installed' && offerWaiting());
  });
  setInterval(() => void registration.update().catch(() => {}), LOOK_EVERY_MS);
}
