/** The WebAssembly module, loaded with the first call that needs it. */
import type { Engine } from '../engine.js';
import { WeftError, isTrap } from '../error.js';

interface Glue extends Engine {
  /** Instantiates the module. */
  default(options: { module_or_path: URL }): Promise<unknown>;
}

let loading: Promise<Engine> | undefined;

async function load(): Promise<Engine> {
  // Bundlers copy the files that these addresses name, as they are.
  const glue = new URL('../engine/weft.js', import.meta.url);
  const wasm = new URL('../engine/weft_bg.wasm', import.meta.url);
  try {
    const engine = (await import(/* @vite-ignore */ /* webpackIgnore: true */ glue.href)) as Glue;
    await engine.default({ module_or_path: wasm });
    return engine;
  } catch (error) {
    if (isTrap(error)) throw error;
    const why = (error as Error).message;
    throw new WeftError('network', `the engine could not be loaded (${why}); check that the files of the package are complete, and load the page again`, {}, { cause: error });
  }
}

/** The engine. A failed load is tried again with the next call. */
export function engine(): Promise<Engine> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}
