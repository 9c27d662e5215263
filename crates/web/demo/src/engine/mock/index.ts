/**
 * Stands in for the package in tests and in `vite --mode mock`: the public API with canned answers,
 * a loss curve and errors on demand. The address steers it: `?mock=slow,lost` names its behaviours.
 */
export type * from '../../../../js/src/types.js';
export { cache, devices } from './host.js';
export { Model } from './model.js';
export { WeftError } from './behaviour.js';
