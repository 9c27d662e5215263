/** A conversation. */
import type { Plain, Session } from '../engine.js';
import type { SessionMethods } from '../protocol.js';
import type * as t from '../types.js';
import type { Call } from './call.js';
import { OnDevice } from './on-device.js';
import type { Serves } from './served.js';

export class SessionObject extends OnDevice<Session> implements Serves<SessionMethods> {
  send(call: Call, messages: readonly t.Message[], options: Plain<t.AnswerOptions>): Promise<t.Finish> {
    return this.cancellable(call, (cancel) => this.inner.send(messages, options, call.token, call.report, cancel));
  }

  complete(call: Call, text: string, options: Plain<t.CompleteOptions>): Promise<t.Finish> {
    return this.cancellable(call, (cancel) => this.inner.complete(text, options, call.token, call.report, cancel));
  }

  async logits(call: Call, ids: Uint32Array): Promise<t.Logits> {
    call.check();
    return this.cancellable(call, (cancel) => this.inner.logits(ids, cancel));
  }

  tokens(): Uint32Array {
    return this.inner.tokens();
  }

  rollback(_call: Call, tokens: number): void {
    this.inner.rollback(tokens);
  }

  save(): Promise<Uint8Array> {
    return this.during(() => this.inner.save());
  }

  load(_call: Call, bytes: Uint8Array): Promise<void> {
    return this.during(() => this.inner.load(bytes));
  }
}
