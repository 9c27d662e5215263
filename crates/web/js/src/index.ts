/** Chat with GGUF models and fine-tune them in a page. The engine runs in a worker. */
export type * from './types.js';
export { type ErrorCode, WeftError } from './error.js';
export { Adapter } from './client/adapter.js';
export { Batch } from './client/batch.js';
export { cache, devices } from './client/host.js';
export { Inspection, Model, type ModelEventMap } from './client/model.js';
export { Session } from './client/session.js';
export { Trainer } from './client/trainer.js';
