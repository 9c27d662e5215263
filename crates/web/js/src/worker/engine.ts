/** The WebAssembly module, loaded with the first call that needs it. */
import type { Engine, Report } from '../engine.js';
import { WeftError, isTrap } from '../error.js';

interface Glue extends Engine {
  /** Instantiates the module. */
  default(options: { module_or_path: Response }): Promise<unknown>;
}

let loading: Promise<Engine> | undefined;

/**
 * The module while it comes. A copy of its bytes is counted: browsers keep the compiled module of a
 * response of the network only.
 */
async function fetched(url: URL, report: Report): Promise<Response> {
  const response = await fetch(url);
  void count(response.clone(), report).catch(() => {});
  return response;
}

async function count({ body, headers }: Response, report: Report): Promise<void> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  // The length of packed bytes says nothing about the bytes that come out.
  const total = headers.has('content-encoding') ? 0 : Number(headers.get('content-length') ?? 0);
  let done = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    done += part.value.length;
    report({ phase: 'engine', done, total });
  }
}

async function load(report: Report): Promise<Engine> {
  // Bundlers copy the files that these addresses name, as they are.
  const glue = new URL('../engine/weft.js', import.meta.url);
  const wasm = new URL('../engine/weft_bg.wasm', import.meta.url);
  try {
    const engine = (await import(/* @vite-ignore */ /* webpackIgnore: true */ glue.href)) as Glue;
    await engine.default({ module_or_path: await fetched(wasm, report) });
    return engine;
  } catch (error) {
    if (isTrap(error)) throw error;
    const why = (error as Error).message;
    throw new WeftError('network', `the engine could not be loaded (${why}); check that the files of the package are complete, and load the page again`, {}, { cause: error });
  }
}

/** The engine. The first call is told how far it is. A failed load is tried again with the next call. */
export function engine(report: Report = () => {}): Promise<Engine> {
  loading ??= load(report).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}
