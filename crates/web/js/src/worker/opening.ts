/** From the files of a model to its weights. */
import type { Engine, Model, Opened } from '../engine.js';
import type { OpenRequest } from '../protocol.js';
import type { ModelSource } from '../sources/model-source.js';
import type { Call } from './call.js';

/** Reads the headers of the files. */
export function openModel(call: Call, engine: Engine, { device, limits }: OpenRequest, source: ModelSource): Promise<Opened> {
  return call.stoppable(engine, (cancel) => engine.open(source.readers, device, limits, cancel));
}

/** Loads the weights. `opened` is used up. */
export async function loadWeights(call: Call, engine: Engine, source: ModelSource, opened: Opened): Promise<Model> {
  let model: Model | undefined;
  let isUsed = false;
  try {
    await source.whole(async () => {
      isUsed = true;
      model = await call.stoppable(engine, (cancel) => opened.load(call.report, cancel));
    });
    return model!;
  } catch (error) {
    // The bytes were not those that the page wants, or the end of the file did not come.
    if (!isUsed) opened.free();
    model?.free();
    throw error;
  }
}
