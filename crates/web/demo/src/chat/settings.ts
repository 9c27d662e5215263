/** The dialog of settings: the system turn, sampling, lengths, tools, the device. */
import { host } from '../models/host.js';
import { changeSettings, parseTools, settings, type Settings } from '../store/settings.js';
import { openDialog } from '../ui/dialog.js';
import { freshId, h, show } from '../ui/dom.js';
import { tellError } from '../ui/notice.js';
import { chat } from './chat.js';

interface NumberField {
  readonly key: 'temperature' | 'topK' | 'topP' | 'minP' | 'repetitionPenalty' | 'seed' | 'maxTokens' | 'context';
  readonly label: string;
  readonly hint: string;
  readonly min: number;
  readonly max: number;
  readonly step: number | 'any';
}

const SAMPLING: readonly NumberField[] = [
  { key: 'temperature', label: 'Temperature', hint: '0 takes the most probable token', min: 0, max: 5, step: 'any' },
  { key: 'topK', label: 'Top k', hint: 'the k most probable tokens', min: 0, max: 1000, step: 1 },
  { key: 'topP', label: 'Top p', hint: 'the most probable tokens up to this sum', min: 0, max: 1, step: 'any' },
  { key: 'minP', label: 'Min p', hint: 'tokens at least this probable beside the best', min: 0, max: 1, step: 'any' },
  { key: 'repetitionPenalty', label: 'Repetition penalty', hint: '1 is none', min: 0.1, max: 5, step: 'any' },
  { key: 'seed', label: 'Seed', hint: 'another one for each answer', min: 0, max: 4294967295, step: 1 },
];
const LENGTHS: readonly NumberField[] = [
  { key: 'maxTokens', label: 'Longest answer, tokens', hint: 'as long as the context', min: 1, max: 1e6, step: 1 },
  { key: 'context', label: 'Context, tokens', hint: '8192, or the length of the model', min: 64, max: 1e6, step: 1 },
];

function field(label: string, hint: string, input: HTMLElement): HTMLElement {
  const id = freshId('hint');
  input.setAttribute('aria-describedby', id);
  const named = h('label', {}, h('span', {}, label), input);
  return h('div', { class: 'field' }, named, h('small', { id, class: 'muted' }, hint));
}

function change(part: Settings): void {
  void changeSettings(part).catch(tellError);
}

function numberInput({ key, label, hint, min, max, step }: NumberField, changed: () => void = () => {}): HTMLElement {
  const id = freshId('hint');
  const input = h('input', {
    type: 'number',
    inputmode: 'decimal',
    min,
    max,
    step,
    value: settings.value[key] ?? '',
    placeholder: 'default',
    'aria-describedby': id,
  });
  const error = h('small', { class: 'error', role: 'alert', hidden: true });
  input.addEventListener('change', () => {
    show(error, !input.checkValidity());
    input.setAttribute('aria-invalid', String(!input.checkValidity()));
    error.textContent = `A number from ${min} to ${max}; empty for the default.`;
    if (!input.checkValidity()) return;
    change({ [key]: input.value === '' ? undefined : input.valueAsNumber });
    changed();
  });
  const named = h('label', {}, h('span', {}, label), input);
  return h('div', { class: 'field' }, named, h('small', { id, class: 'muted' }, hint), error);
}

function select(
  label: string,
  hint: string,
  options: readonly [string, string][],
  value: string,
  changed: (value: string) => void,
): HTMLElement {
  const input: HTMLSelectElement = h(
    'select',
    { value, onchange: () => changed(input.value) },
    ...options.map(([name, text]) => h('option', { value: name }, text)),
  );
  return field(label, hint, input);
}

function systemField(): HTMLElement {
  const input: HTMLTextAreaElement = h(
    'textarea',
    {
      rows: 3,
      class: 'grows',
      onchange: () => void chat.changeSystem(input.value).then(() => change({ system: input.value })),
    },
    chat.conversation.value.system,
  );
  return field('System turn', 'Said to the model before this conversation, and before new ones.', input);
}

function toolsField(): HTMLElement {
  const error = h('small', { class: 'error', role: 'alert', hidden: true });
  const input: HTMLTextAreaElement = h(
    'textarea',
    {
      rows: 4,
      class: 'grows mono',
      spellcheck: 'false',
      placeholder: '[{"type": "function", "function": {"name": ".."}}]',
      onchange: () => {
        try {
          parseTools(input.value);
          change({ tools: input.value.trim() });
          show(error, false);
        } catch (refused) {
          error.textContent = (refused as Error).message;
          show(error, true);
        }
      },
    },
    settings.value.tools,
  );
  return h('div', {}, field('Tools, as JSON', 'The page shows the calls; you give the results.', input), error);
}

function deviceField(): HTMLElement {
  const again = () => {
    const { ready } = host;
    if (ready) void host.load(ready.choice);
  };
  return select(
    'Device',
    'The model is loaded again.',
    [
      ['auto', 'GPU if there is one'],
      ['gpu', 'GPU'],
      ['cpu', 'CPU'],
    ],
    settings.value.device ?? 'auto',
    (device) => void changeSettings({ device: device as 'auto' }).then(again),
  );
}

function group(title: string, ...fields: readonly HTMLElement[]): HTMLElement {
  return h('fieldset', {}, h('legend', {}, title), ...fields);
}

export function openSettings(): void {
  const renew = () => void host.renewSession().catch(tellError);
  const thinking = settings.value.thinking;
  openDialog(
    'Settings',
    'side',
    group(
      'Conversation',
      systemField(),
      select(
        'Thinking',
        'Only models that can think do.',
        [
          ['', 'As the model wants'],
          ['on', 'On'],
          ['off', 'Off'],
        ],
        thinking === undefined ? '' : thinking ? 'on' : 'off',
        (value) => change({ thinking: value === '' ? undefined : value === 'on' }),
      ),
    ),
    group('Sampling', h('div', { class: 'pairs' }, ...SAMPLING.map((one) => numberInput(one)))),
    group(
      'Lengths',
      h(
        'div',
        { class: 'pairs' },
        ...LENGTHS.map((one) => numberInput(one, one.key === 'context' ? renew : undefined)),
      ),
      field(
        'Texts that end an answer',
        'One a line.',
        h(
          'textarea',
          {
            rows: 2,
            class: 'grows',
            onchange: (event: Event) => change({ stops: (event.target as HTMLTextAreaElement).value }),
          },
          settings.value.stops,
        ),
      ),
    ),
    group('Tools', toolsField()),
    group(
      'Computing',
      deviceField(),
      select(
        'Type of the cache of the context',
        'Smaller types take less memory.',
        [
          ['', 'Default (f16)'],
          ['f32', 'f32'],
          ['f16', 'f16'],
          ['q8_0', 'q8_0'],
        ],
        settings.value.kv ?? '',
        (kv) => void changeSettings({ kv: (kv || undefined) as 'f16' | undefined }).then(renew),
      ),
    ),
  );
}
