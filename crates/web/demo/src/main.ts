/** The site: a header, two views of one model, and the work that begins with the page. */
import './styles/base.css';
import './styles/parts.css';
import './styles/chat.css';
import './styles/teach.css';
import { chat } from './chat/chat.js';
import { keepConversations } from './chat/keep.js';
import { chatView } from './chat/view.js';
import { host, interruptedLoad } from './models/host.js';
import { defaultChoice, recentModels, reopen } from './models/recent.js';
import { modelBanner, modelButton } from './models/status.js';
import { takeFiles } from './models/take.js';
import { workOffline } from './offline/register.js';
import { isKept } from './store/database.js';
import { readSettings } from './store/settings.js';
import { guardRun } from './teach/leave.js';
import { run } from './teach/run.js';
import { teachView } from './teach/view.js';
import { announcer } from './ui/announce.js';
import { h, show } from './ui/dom.js';
import { acceptDrops } from './ui/files.js';
import { notices, tell, tellError } from './ui/notice.js';

const VIEWS = { chat: 'Chat', teach: 'Teach' } as const;
type View = keyof typeof VIEWS;

const currentView = (): View => (location.hash === '#teach' ? 'teach' : 'chat');

/** Comes back to the last model, unless the tab died while it loaded this model. */
async function loadLastModel(): Promise<void> {
  const died = await interruptedLoad();
  if (died !== undefined && died !== defaultChoice.name) {
    tell(
      `The page ended while it loaded ${died}; it may be too large for this device. The default model is loaded instead.`,
      'bad',
    );
    return host.load(defaultChoice);
  }
  const [last] = await recentModels();
  const choice = last && (await reopen(last, false));
  if (last && !choice) tell(`The browser asks again before the page may read ${last.name}: choose it in Models.`);
  await host.load(choice ?? defaultChoice);
}

/** Calls `ready` as soon as no answer and no run is under way. */
function whenIdle(ready: () => void): void {
  let done = false;
  const look = () => {
    if (done || chat.answering.value !== undefined || run.running) return;
    done = true;
    ready();
  };
  chat.answering.watch(look);
  run.state.watch(look);
}

function layout(): void {
  const views = {
    chat: h('main', { id: 'chat-view' }, chatView()),
    teach: h('main', { id: 'teach-view' }, teachView()),
  };
  const links = Object.entries(VIEWS).map(([view, label]) => ({ view, link: h('a', { href: `#${view}` }, label) }));
  const toContent = (event: Event) => {
    event.preventDefault();
    const view = views[currentView()];
    view.querySelector<HTMLElement>('textarea')?.focus();
  };
  const skip = h('a', { class: 'skip', onclick: toContent }, 'Skip to the content');
  document.body.append(
    skip,
    h(
      'header',
      { class: 'top' },
      h('span', { class: 'brand' }, h('img', { src: './icon.svg', alt: '', width: 22, height: 22 }), 'Weft'),
      h('nav', { class: 'tabs', 'aria-label': 'Views' }, ...links.map(({ link }) => link)),
      modelButton(),
    ),
    h('div', { class: 'strip', role: 'region', 'aria-label': 'Notices' }, modelBanner(), notices()),
    views.chat,
    views.teach,
    announcer(),
  );
  const showView = () => {
    const current = currentView();
    for (const { view, link } of links) {
      show(views[view as View], view === current);
      if (view === current) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    skip.href = `#${current}-view`;
    document.title = `${VIEWS[current]} · Weft`;
  };
  window.addEventListener('hashchange', showView);
  showView();
  // A file that is dropped beside a place for it is a model, or an adapter.
  acceptDrops(document.body, (files) => void takeFiles(files));
}

async function start(): Promise<void> {
  window.addEventListener('unhandledrejection', (event) => tellError(event.reason));
  window.addEventListener('error', (event) => event.error && tellError(event.error));
  await readSettings();
  layout();
  if (!(await isKept())) tell('This browser keeps nothing in this window: conversations end with the tab.');
  await chat.restore();
  keepConversations();
  guardRun();
  // Without a service worker (some private windows) the pages only need the network.
  workOffline(whenIdle).catch((error: unknown) => console.warn(error));
  await loadLastModel();
}

void start().catch(tellError);
