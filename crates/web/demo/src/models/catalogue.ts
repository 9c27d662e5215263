/** The models that the pages suggest: the list of the command line, as of the build. */
import list from '../../../../cli/models.json';

export interface Suggestion {
  readonly name: string;
  readonly address: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Bytes of weights, cache and intermediates for a context of 4096 tokens. */
  readonly memory: number;
  readonly licence: string;
}

export const suggestions: readonly Suggestion[] = list.map((model) => ({
  name: model.name,
  address: model.address,
  bytes: model.bytes,
  sha256: model.sha256,
  memory: model.memory_4096_bytes,
  licence: model.licence,
}));
