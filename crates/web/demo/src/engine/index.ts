/** The engine of the pages: the package. In tests Vite puts canned answers in its place. */
import * as weft from '@weft-llm/web';
import type { Engine } from './api.js';

export const engine: Engine = weft;
