/** The view Teach: examples, settings, what the run takes, the run, comparing, the adapter. */
import type { Piece } from '@weft-llm/web';
import type { Trainer } from '../engine/api.js';
import { host } from '../models/host.js';
import { reopen } from '../models/recent.js';
import { sentenceOf } from '../engine/errors.js';
import { confirmed } from '../ui/dialog.js';
import { h, show } from '../ui/dom.js';
import { download } from '../ui/files.js';
import { bytes, count, counted, digits, seconds } from '../ui/format.js';
import { tell, tellError } from '../ui/notice.js';
import { Chart, summary } from './chart.js';
import { compareSection } from './compare.js';
import { DataPanel } from './data.js';
import type { KeptRun } from './kept.js';
import { split } from './lines.js';
import { OptionsForm } from './options.js';
import { describeEnd, run, type RunState } from './run.js';
import { zip } from './zip.js';

const button = (label: string, kind: string, onclick: () => void) =>
  h('button', { type: 'button', class: kind, onclick }, label);

/** What a checked run learns, and what has no effect. */
function factsOf({ facts }: Trainer): string {
  const sentences = [
    `${counted(facts.examples, 'example')} with ${count(facts.tokens)} tokens, of which ${count(facts.learntTokens)} are learnt.`,
    facts.validation > 0 && `${counted(facts.validation, 'example')} held out.`,
    run.leftOut > 0 && `${counted(run.leftOut, 'example')} left out: too long, or with nothing to learn.`,
    `${counted(facts.stepsPerEpoch, 'step')} a round, ${counted(run.total, 'step')} in all.`,
    `${count(facts.parameters)} numbers are trained.`,
    facts.unused.length > 0 && `These keys have no effect: ${facts.unused.join(', ')}.`,
  ];
  return sentences.filter(Boolean).join(' ');
}

function example(pieces: readonly Piece[], at: number): HTMLElement {
  const label = `Example ${at + 1} as the model reads it`;
  const texts = pieces.map(({ text, learnt }) => (learnt ? h('mark', {}, text) : text));
  return h('pre', { tabindex: 0, role: 'region', 'aria-label': label }, ...texts);
}

/** What the run takes and learns, as a checked trainer tells it. It is folded while the run goes on. */
function checkedSection(): HTMLElement {
  const facts = h('p');
  const memory = h('dl', { class: 'facts' });
  const examples = h('div', { class: 'examples' });
  const details = h(
    'details',
    { class: 'more' },
    h('summary', {}, 'Examples as the model reads them, and memory'),
    examples,
    h('h3', {}, 'Memory'),
    memory,
  );
  const node = h('section', {}, h('h2', {}, 'What will be learnt'), facts, details);
  run.state.watch(({ kind }) => {
    const { trainer } = run;
    show(node, trainer !== undefined);
    details.open = kind === 'ready';
    if (trainer === undefined) return;
    const { memory: needs } = trainer;
    facts.textContent = factsOf(trainer);
    const rows: [string, number][] = [
      ['Weights', needs.weights],
      ['Trained numbers', needs.parameters],
      ['Their moments', needs.optimizer],
      ['Intermediate values', needs.intermediates],
      ['In all', needs.total],
    ];
    memory.replaceChildren(...rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, bytes(value))]));
    examples.replaceChildren(
      h('p', { class: 'muted' }, 'What is learnt is ', h('mark', {}, 'marked'), '.'),
      ...run.examples.map(example),
    );
  });
  return node;
}

function adapterSection(): HTMLElement {
  const stem = () => `adapter-step-${run.log.value.at(-1)?.number ?? 0}`;
  const peft = async () => download(`${stem()}.zip`, zip(await run.peft()));
  const gguf = async () => download(`${stem()}.gguf`, await run.gguf());
  const use = async () => {
    await host.addAdapter(stem(), await run.peft());
    tell('The adapter is applied in Chat. Models has its scale.', 'plain', {
      label: 'Open Chat',
      run: () => (location.hash = '#chat'),
    });
  };
  const act = (work: () => Promise<void>) => () => void work().catch(tellError);
  return h(
    'section',
    {},
    h('h2', {}, 'The adapter'),
    h(
      'p',
      { class: 'muted' },
      'Made of the last step. PEFT is read by weft run --lora and by Python’s peft; GGUF by llama.cpp, too.',
    ),
    h(
      'div',
      { class: 'row' },
      button('Download as PEFT', '', act(peft)),
      button('Download as GGUF', '', act(gguf)),
      button('Use in Chat', '', act(use)),
    ),
  );
}

/** A run of an earlier visit. */
function keptBanner(goOn: (kept: KeptRun) => void): HTMLElement {
  const text = h('p');
  const actions = h('div', { class: 'row' });
  const node = h('div', { class: 'card', role: 'region', 'aria-label': 'Kept run' }, text, actions);
  const forget = async () => {
    if (await confirmed('Delete the run and what it has learnt?', 'Delete')) await run.forget();
  };
  run.state.watch((state) => {
    show(node, state.kind === 'kept');
    if (state.kind !== 'kept') return;
    const { step, total, model, ended } = state.run;
    const end = ended === null ? '' : ' It has ended.';
    text.textContent = `A run of ${model.name} is kept: step ${step} of ${total}.${end}`;
    actions.replaceChildren(
      button(ended === null ? 'Go on' : 'Open', 'primary', () => goOn(state.run)),
      button('Delete', '', () => void forget().catch(tellError)),
    );
  });
  return node;
}

/** Loads the model of a kept run if another one is there. */
async function loadModelOf({ model }: KeptRun): Promise<void> {
  if (host.ready?.model.info.digest === model.digest || model.origin === undefined) return;
  const choice = await reopen({ name: model.name, origin: model.origin, used: 0 }, true);
  if (choice) await host.load(choice);
}

function isInView(node: HTMLElement): boolean {
  const { top, bottom } = node.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}

function describe(state: RunState): string {
  const { log, total } = run;
  const last = log.value.at(-1);
  switch (state.kind) {
    case 'checking':
      return run.progress.value || 'Checks the examples';
    case 'running': {
      const now = run.progress.value || `Step ${(last?.number ?? 0) + 1} of ${total}`;
      if (last === undefined) return `${now}.`;
      const left = run.pace > 0 ? ` About ${seconds(run.pace * (total - last.number))} left.` : '';
      return `${now}. Loss ${digits(last.loss)} at step ${last.number}.${left}`;
    }
    case 'stopped':
      return `Stopped after step ${last?.number ?? 0} of ${total}. ${summary(log.value)}`;
    case 'done':
      return `${describeEnd(state.ended)} ${summary(log.value)}`;
    default:
      return '';
  }
}

export function teachView(): HTMLElement {
  /** Whether data or settings differ from what was checked. */
  let stale = true;
  const changed = () => {
    stale = true;
    options.showDefaults(undefined);
    update();
  };
  const data: DataPanel = new DataPanel(changed);
  const options: OptionsForm = new OptionsForm(changed);

  const check = async (): Promise<boolean> => {
    const sound = await run.check(split(data.checked.examples, options.value.heldOut ?? 0), options.value);
    if (sound) {
      stale = false;
      options.showDefaults(run.trainer?.facts);
    }
    update();
    return sound;
  };
  const start = async () => {
    const { kind } = run.state.value;
    if (kind === 'stopped' && !stale) return run.start();
    const question = 'Replace the run that is kept, and what it has learnt?';
    if ((await run.replaces()) && !(await confirmed(question, 'Replace'))) return;
    if (kind === 'ready' && !stale) return run.start();
    if (await check()) await run.start();
  };
  const goOn = async (kept: KeptRun) => {
    await loadModelOf(kept);
    options.value = kept.options;
    stale = false;
    await run.goOn(kept);
    options.showDefaults(run.trainer?.facts);
  };
  const act = (work: () => Promise<unknown>) => () =>
    void work().catch((error: unknown) => tell(sentenceOf(error), 'bad'));
  const checking = button('Check', '', act(check));
  const starting = button('Start', 'primary', act(start));
  const stopping = button(
    'Stop',
    'primary',
    act(() => run.stop()),
  );
  const status = h('p', { class: 'run-status' });
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  const bar = h('progress', { 'aria-label': 'Steps', max: 1 });
  const chart = new Chart();
  const checked = checkedSection();
  const learnt = h('div', {}, compareSection(), adapterSection());

  const running = h(
    'section',
    { class: 'run' },
    h('h2', {}, 'Run'),
    h('div', { class: 'row' }, starting, stopping, checking),
    status,
    bar,
    error,
    chart.node,
  );
  run.state.watch(({ kind }) => {
    // What will be learnt came in above the button that was pressed, or was folded.
    if (kind === 'running') requestAnimationFrame(() => running.scrollIntoView({ block: 'start' }));
  });

  const update = () => {
    const { kind } = run.state.value;
    const usable = host.ready !== undefined && data.checked.examples.length > 0 && data.checked.errors.length === 0;
    const busy = kind === 'running' || kind === 'checking';
    checking.disabled = !usable || busy;
    starting.disabled = !usable || busy;
    show(starting, kind !== 'running');
    show(stopping, kind === 'running');
    starting.textContent = kind === 'stopped' && !stale ? 'Go on' : kind === 'done' ? 'Start again' : 'Start';
    show(bar, kind === 'running');
    bar.value = run.total > 0 ? (run.log.value.at(-1)?.number ?? 0) / run.total : 0;
    status.textContent = describe(run.state.value);
    show(chart.node, run.log.value.length > 0);
    show(learnt, run.trainer !== undefined && run.log.value.length > 0);
  };
  run.state.watch(update);
  run.progress.watch(update);
  host.state.watch(update);
  run.log.watch((log) => {
    chart.set(log, run.total);
    const grows = chart.node.hidden && run.running && isInView(status);
    update();
    if (grows) running.scrollIntoView({ block: 'nearest' });
  });
  run.error.watch((found) => {
    show(error, found !== undefined);
    error.textContent = found?.line === undefined ? (found?.sentence ?? '') : `Line ${found.line}: ${found.sentence}`;
    if (found?.line !== undefined) data.showError({ line: found.line, sentence: `: ${found.sentence}` });
  });

  void Promise.all([data.restore(), options.restore(), run.restore()]).catch(tellError);
  return h(
    'div',
    { class: 'teach scroller' },
    h(
      'div',
      { class: 'teach-column' },
      h('h1', {}, 'Teach'),
      h(
        'p',
        { class: 'lead' },
        'Give the model examples, and keep what it learns as an adapter. Everything stays on this device.',
      ),
      keptBanner((kept) => act(() => goOn(kept))()),
      data.node,
      h('section', {}, h('h2', {}, 'Settings'), options.node),
      checked,
      running,
      learnt,
    ),
  );
}
