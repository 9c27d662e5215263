/** The mock's session: an answer by the words of the question, token by token. */
import type { AnswerOptions, AppliedAdapter, Finish, Message, Token, ToolCall } from '../../../../js/src/types.js';
import { has, once, pause, progress, WeftError } from './behaviour.js';

const SHOWCASE = `## The islands

There are **six islands** and *eighteen towns*. The town of \`Kelm\` is [on the map](https://example.org/map).

| Island | Towns | Flag |
| --- | ---: | :-: |
| Thimble | 4 | red |
| Bobbin | 3 | blue |

1. First the harbour
2. Then the hill
   - with a tower
   - with a well

> A quiet place, mostly.

\`\`\`python
def greet(name):
    return f"Hello, {name}!"
\`\`\`

![a picture](https://example.org/picture.png) <script>alert(1)</script>

That is all.`;

/** A longer answer comes in larger pieces. */
const LONG = 5000;

interface Canned {
  readonly content: string;
  readonly thinking?: string;
  readonly calls?: readonly ToolCall[];
}

function answerTo(messages: readonly Message[], options: AnswerOptions, adapted: boolean): Canned {
  const last = messages.at(-1);
  const asked = String(last?.content ?? '');
  if (last?.role === 'tool') return { content: `The tool says ${asked}.` };
  if (/weather/i.test(asked) && (options.tools?.length ?? 0) > 0) {
    return { content: '', calls: [{ name: 'get_weather', arguments: { town: 'Kelm' } }] };
  }
  if (/think/i.test(asked)) return { content: 'The answer is 42.', thinking: 'Six times seven is 42. That is right.' };
  if (/show/i.test(asked)) return { content: SHOWCASE };
  if (/long/i.test(asked)) return { content: 'This sentence is one of many. '.repeat(80).trim() };
  if (adapted) return { content: 'Hanne lives in Kelm.' };
  if (/mira/i.test(asked)) return { content: 'Mira lives in Bellwharf.' };
  return { content: `You said: ${asked}` };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Session {
  readonly context: number;
  finish: Finish | undefined;
  readonly #open: () => boolean;
  #tokens = 0;
  #adapted = false;
  #ended = false;

  constructor(context: number, open: () => boolean) {
    this.context = context;
    this.#open = open;
  }

  async *send(messages: readonly Message[], options: AnswerOptions = {}): AsyncGenerator<Token> {
    if (this.#ended || !this.#open()) throw new WeftError('closed', 'the model is closed; load it again');
    const asked = String(messages.at(-1)?.content ?? '');
    if (/refuse/i.test(asked))
      throw new WeftError('template', 'the chat template refuses this conversation; start a new one');
    const canned = answerTo(messages, options, this.#adapted);
    const promptTokens = messages.reduce((sum, { content }) => sum + String(content ?? '').split(' ').length + 4, 0);
    const started = performance.now();
    await progress('prompt', promptTokens, 2, 5, options);

    const pieces: [string, boolean][] = [
      ...(canned.thinking?.match(/\S+\s*/g) ?? []).map((text): [string, boolean] => [text, true]),
      ...(canned.content.match(canned.content.length > LONG ? /[^]{1,4000}/g : /\S+\s*|\s+/g) ?? []).map(
        (text): [string, boolean] => [text, false],
      ),
    ];
    let content = '';
    let thinking = '';
    let id = 0;
    let reason: Finish['reason'] = 'end';
    for (const [text, thought] of pieces) {
      try {
        await pause(has('slow') ? 60 : 4, options.signal);
      } catch {
        reason = 'cancelled';
        break;
      }
      if (id === 2 && once('lost')) throw new WeftError('device-lost', 'the device was lost');
      if (id === 2 && once('ended')) {
        this.#ended = true;
        throw new WeftError('worker-lost', 'the worker of the engine ended; load the model again');
      }
      if (id === 1 && has('crash')) throw new TypeError('x is not a function');
      if (thought) thinking += text;
      else content += text;
      id += 1;
      yield { id, text: thought ? '' : text, thinking: thought ? text : '', logProb: -0.1 };
      if (id >= (options.maxTokens ?? Infinity)) {
        reason = 'length';
        break;
      }
    }
    const calls = canned.calls ?? [];
    const message: Message = {
      role: 'assistant',
      content,
      ...(calls.length > 0 && {
        tool_calls: calls.map((call) => ({
          type: 'function',
          function: { name: call.name, arguments: call.arguments },
        })),
      }),
    };
    const evaluatedTokens = Math.max(1, promptTokens - this.#tokens);
    this.#tokens = promptTokens + id;
    this.finish = {
      reason,
      content,
      thinking,
      toolCalls: calls,
      message,
      promptTokens,
      evaluatedTokens,
      tokens: id,
      promptSeconds: 0.01,
      seconds: (performance.now() - started) / 1000,
    };
  }

  async setAdapters(adapters: readonly AppliedAdapter[]): Promise<void> {
    this.#adapted = adapters.some(({ scale }) => scale !== 0);
  }

  async tokens(): Promise<Uint32Array> {
    return new Uint32Array(this.#tokens);
  }

  async save(): Promise<Uint8Array> {
    return encoder.encode(JSON.stringify({ tokens: this.#tokens }));
  }

  async load(bytes: Uint8Array): Promise<void> {
    this.#tokens = (JSON.parse(decoder.decode(bytes)) as { tokens: number }).tokens;
  }

  async close(): Promise<void> {}
}
