/** The dialog of models: the one that is loaded, new ones, recent ones, the cache, suggestions. */
import type { CachedFile, Storage } from '@weft-llm/web';
import { engine } from '../engine/index.js';
import { sentenceOf } from '../engine/errors.js';
import { confirmed, openDialog } from '../ui/dialog.js';
import { freshId, h, show } from '../ui/dom.js';
import { acceptDrops, pickFiles } from '../ui/files.js';
import { bytes, count } from '../ui/format.js';
import { icon } from '../ui/icons.js';
import { tell, tellError } from '../ui/notice.js';
import { resolveAddress } from './address.js';
import { adapterSection } from './adapters.js';
import { suggestions, type Suggestion } from './catalogue.js';
import { fit, roomOf, type Room } from './fit.js';
import { host } from './host.js';
import { defaultChoice, forgetModel, recentModels, reopen, type Choice, type Recent } from './recent.js';
import { takeFiles } from './take.js';

type Close = () => void;

function section(title: string, ...children: readonly (Node | false)[]): HTMLElement {
  const id = freshId('section');
  return h('section', { 'aria-labelledby': id }, h('h3', { id }, title), ...children);
}

function choose(choice: Choice, close: Close): void {
  close();
  void host.load(choice);
}

/** Loads what an address means. `sha256` is of the file that the list was made with. */
async function chooseAddress(text: string, close: Close, sha256?: string): Promise<void> {
  const resolved = await resolveAddress(text);
  const digest = sha256 ?? resolved.sha256;
  const source = resolved.urls.length === 1 ? resolved.urls[0]! : resolved.urls;
  const checked = digest !== undefined && resolved.urls.length === 1 && { sha256: digest };
  choose({ name: resolved.name, source, origin: { kind: 'urls', urls: resolved.urls, ...checked }, ...checked }, close);
}

function currentSection(): HTMLElement | false {
  const { ready } = host;
  if (ready === undefined) return false;
  const { info } = ready.model;
  const facts: [string, string][] = [
    ['Name', info.name],
    [
      'Architecture',
      `${info.architecture}, ${info.layers} layers, ${count(info.parameters / 1e6)} M weights, ${info.type}`,
    ],
    ['Computes on', info.executor === 'gpu' ? `GPU: ${info.adapter}` : 'CPU'],
    ['Context', `${count(ready.session.context)} of ${count(info.contextLength)} tokens`],
    ['File', bytes(info.fileBytes)],
  ];
  const memory = h('dd', {}, '…');
  void ready.model.memory().then(({ wasm, gpu }) => {
    memory.textContent = gpu > 0 ? `${bytes(wasm)}, and ${bytes(gpu)} on the GPU` : bytes(wasm);
  }, tellError);
  const rows = facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]);
  return section('Loaded', h('dl', { class: 'facts' }, ...rows, h('dt', {}, 'Memory'), memory));
}

function openSection(close: Close): HTMLElement {
  const id = freshId('error');
  const input = h('input', {
    type: 'text',
    inputmode: 'url',
    autocapitalize: 'off',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'https://…/model.gguf or hf:owner/repo',
    'aria-describedby': id,
  });
  const error = h('p', { class: 'error', id, role: 'alert', hidden: true });
  const load = h('button', { type: 'submit', class: 'primary' }, 'Load');
  const submit = async (event: Event) => {
    event.preventDefault();
    show(error, false);
    load.disabled = true;
    try {
      await chooseAddress(input.value, close);
    } catch (refused) {
      error.textContent = sentenceOf(refused);
      show(error, true);
      input.focus();
    } finally {
      load.disabled = false;
    }
  };
  const pick = async () => {
    const files = await pickFiles('.gguf,.safetensors,.json');
    if (files.length === 0) return;
    close();
    await takeFiles(files);
  };
  const zone = h(
    'div',
    { class: 'drop' },
    h('button', { type: 'button', onclick: () => void pick().catch(tellError) }, 'Choose a file'),
    h('p', { class: 'muted' }, 'or drop a GGUF file here. It is read where it lies and sent nowhere.'),
  );
  acceptDrops(zone, (files) => {
    close();
    void takeFiles(files);
  });
  return section(
    'Open',
    zone,
    h(
      'form',
      { onsubmit: (event: Event) => void submit(event) },
      h('label', { class: 'field' }, h('span', {}, 'Address'), h('span', { class: 'joined' }, input, load)),
      error,
    ),
  );
}

interface Row {
  readonly name: string;
  readonly detail: string;
  readonly open?: () => void;
  readonly remove?: { readonly label: string; readonly run: () => void };
}

function rows(items: readonly Row[]): HTMLElement {
  const item = ({ name, detail, open, remove }: Row) =>
    h(
      'li',
      {},
      h(
        open ? 'button' : 'div',
        { ...(open && { type: 'button', onclick: open }), class: 'entry' },
        h('span', { class: 'title' }, name),
        h('span', { class: 'muted' }, detail),
      ),
      remove &&
        h(
          'button',
          {
            type: 'button',
            class: 'bare small',
            'aria-label': `${remove.label}: ${name}`,
            title: remove.label,
            onclick: remove.run,
          },
          icon('trash'),
        ),
    );
  return h('ul', { class: 'entries' }, ...items.map(item));
}

function recentSection(recents: readonly Recent[], close: Close, redraw: () => void): HTMLElement | false {
  const others = recents.filter(({ origin }) => origin.kind !== 'default');
  const open = async (recent: Recent) => {
    const choice = await reopen(recent, true);
    if (choice) choose(choice, close);
    else tell('The browser did not allow to read the file: drop it on the page.', 'bad');
  };
  const items = others.map((recent): Row => ({
    name: recent.name,
    detail:
      recent.origin.kind === 'handles'
        ? 'file'
        : new URL(recent.origin.kind === 'urls' ? recent.origin.urls[0]! : location.href).host,
    open: () => void open(recent).catch(tellError),
    remove: { label: 'Forget', run: () => void forgetModel(recent).then(redraw) },
  }));
  return items.length > 0 && section('Recent', rows(items));
}

function fileOf(url: string): string {
  return decodeURIComponent(new URL(url, location.href).pathname.split('/').pop() || url);
}

function cacheSection(
  files: readonly CachedFile[],
  storage: Storage | undefined,
  close: Close,
  redraw: () => void,
): HTMLElement | false {
  if (files.length === 0) return false;
  const remove = async (file: CachedFile) => {
    if (!(await confirmed(`Delete ${fileOf(file.url)} (${bytes(file.present)})?`, 'Delete'))) return;
    await engine.cache.delete(file.url);
    redraw();
  };
  const items = files.map((file): Row => {
    const origin = { kind: 'urls' as const, urls: [file.url] };
    return {
      name: fileOf(file.url),
      detail: file.whole ? bytes(file.bytes) : `${bytes(file.present)} of ${bytes(file.bytes)}`,
      open: () => choose({ name: fileOf(file.url), source: file.url, origin }, close),
      remove: { label: 'Delete', run: () => void remove(file).catch(tellError) },
    };
  });
  const room =
    storage &&
    h(
      'p',
      { class: 'muted' },
      storage.quota > 0 && `${bytes(storage.used)} used, ${bytes(storage.quota)} allowed by the browser. `,
    );
  if (storage && !storage.persistent) {
    const persist = async () => {
      const granted = await engine.cache.persist();
      tell(
        granted
          ? 'The browser keeps the files.'
          : 'The browser did not agree: it may delete the files when space is short.',
      );
      redraw();
    };
    room?.append(
      'It may delete them when space is short. ',
      h('button', { type: 'button', class: 'link', onclick: () => void persist().catch(tellError) }, 'Keep them'),
    );
  }
  return section('On this device', rows(items), room ?? false);
}

function suggestionSection(room: Room, close: Close): HTMLElement {
  const row = (model: Suggestion): Row => {
    const verdict = fit(model.bytes, model.memory, room);
    const detail = `${bytes(model.bytes)} · ${model.licence} · ${verdict.reason}`;
    const open = () => void chooseAddress(model.address, close, model.sha256).catch(tellError);
    return { name: model.name, detail, ...(verdict.fits && { open }) };
  };
  return section(
    'To download',
    h('p', { class: 'muted' }, 'From huggingface.co, once; the file then stays on this device.'),
    rows(suggestions.map(row)),
  );
}

export function openModels(): void {
  const body = h('div', { class: 'models' });
  const dialog = openDialog('Models', 'side', body);
  const close = () => dialog.close();
  const draw = async () => {
    const none = (error: unknown) => void tellError(error);
    const [recents, files, storage, devices] = await Promise.all([
      recentModels(),
      engine.cache.list().catch(none),
      engine.cache.storage().catch(none),
      engine.devices().catch(none),
    ]);
    const room = roomOf(devices ?? [], storage ?? undefined);
    const standard = h(
      'button',
      { type: 'button', class: 'entry', onclick: () => choose(defaultChoice, close) },
      h('span', { class: 'title' }, 'Default model'),
      h('span', { class: 'muted' }, '4.1 MB, part of these pages'),
    );
    const redraw = () => void draw();
    const sections = [
      currentSection(),
      host.ready !== undefined && adapterSection(),
      openSection(close),
      section('Comes along', h('ul', { class: 'entries' }, h('li', {}, standard))),
      recentSection(recents, close, redraw),
      cacheSection(files ?? [], storage ?? undefined, close, redraw),
      suggestionSection(room, close),
    ];
    body.replaceChildren(...sections.filter((one) => one !== false));
  };
  void draw().catch(tellError);
}
