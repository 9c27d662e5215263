/** The engine of the pages: the package, or in tests the canned answers that Vite puts in its place. */
import * as weft from '@weft-llm/web';
import type { Engine } from './api.js';

export const engine: Engine = weft;
