/**
 * What a person may type as a model: the address of a file, or a name on Hugging Face's hub as
 * `weft run` takes it (`hf:OWNER/REPO`, with `:QUANT` or `/FILE`). Only a name without a file asks
 * the hub which files there are.
 */

export interface Resolved {
  /** The name that the pages show. */
  readonly name: string;
  /** The addresses of the file, or of every part of a split file. */
  readonly urls: readonly string[];
  readonly sha256?: string;
}

interface HubName {
  readonly repository: string;
  readonly quant?: string;
  readonly file?: string;
}

interface HubFile {
  readonly rfilename: string;
  readonly lfs?: { readonly sha256: string };
}

const HUB = 'https://huggingface.co';
const PREFIX = /^(?:hf:(?:\/\/)?|(?:https?:\/\/)?(?:www\.)?(?:hf\.co|huggingface\.co)\/)/i;
const PART = /^[A-Za-z0-9][\w.-]{0,95}$/;
/** The quantizations that a name without one means: the first that the repository has. */
const USUAL = ['Q4_K_M', 'Q8_0', 'Q4_0', 'Q4_K_S', 'IQ4_XS', 'Q5_K_M', 'Q6_K', 'Q3_K_M', 'BF16', 'F16', 'F32'];
const SPLIT = /-(\d{5})-of-(\d{5})\.gguf$/i;

export class AddressError extends Error {
  override readonly name = 'WeftError';
  readonly code = 'address';
}

function hubName(text: string): HubName | undefined {
  if (!PREFIX.test(text)) return undefined;
  const wrong = new AddressError(
    `"${text.slice(0, 120)}" is not a name of the hub: hf:OWNER/REPO, with :QUANT or /FILE.gguf`,
  );
  const rest = text.replace(PREFIX, '').split(/[?#]/)[0]!.replace(/\/+$/, '');
  const found = /^([^/:]+)\/([^/:]+)(?::([^/]+)|\/(.+))?$/.exec(rest);
  if (!found || !PART.test(found[1]!) || !PART.test(found[2]!)) throw wrong;
  const repository = `${found[1]}/${found[2]}`;
  if (found[3] !== undefined) return { repository, quant: found[3] };
  // The address of a file's page on the hub has `blob/main` or `resolve/main` before the file.
  const file = found[4]?.replace(/^(?:blob|resolve|raw)\/[^/]+\//, '');
  if (file === undefined || /^tree\/[^/]+$/.test(file)) return { repository };
  if (!/\.gguf$/i.test(file) || file.split('/').some((part) => part === '..' || part === '')) throw wrong;
  return { repository, file };
}

function resolveUrl(repository: string, file: string): string {
  return `${HUB}/${repository}/resolve/main/${file.split('/').map(encodeURIComponent).join('/')}`;
}

/** Every part of a split file, by the name of any part. */
export function partsOf(file: string): string[] {
  const split = SPLIT.exec(file);
  if (!split) return [file];
  const stem = file.slice(0, split.index);
  return Array.from(
    { length: Number(split[2]) },
    (_, at) => `${stem}-${String(at + 1).padStart(5, '0')}-of-${split[2]}.gguf`,
  );
}

/** The file of a repository that a quantization means; without one, the usual quantization. */
export function chooseFile(files: readonly string[], quant?: string): string | undefined {
  const models = files
    .filter((file) => /\.gguf$/i.test(file) && !/mmproj|imatrix/i.test(file.split('/').pop()!))
    .filter((file) => (SPLIT.exec(file)?.[1] ?? '00001') === '00001')
    .sort();
  const like = (wanted: string) => {
    const escaped = wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return models.find((file) => new RegExp(`(^|[-./])${escaped}[-./]`, 'i').test(file));
  };
  if (quant !== undefined) return like(quant);
  return USUAL.map(like).find((file) => file !== undefined) ?? models[0];
}

async function ask(name: HubName, signal?: AbortSignal): Promise<Resolved> {
  const address = `${HUB}/api/models/${name.repository}/revision/main?blobs=true`;
  let response: Response;
  try {
    response = await fetch(address, signal ? { signal } : {});
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new AddressError('the hub cannot be reached; check the network, or drop a file that you have');
  }
  if (!response.ok) {
    throw new AddressError(`the hub has no open repository ${name.repository} (${response.status}); check the name`);
  }
  const listed = (await response.json()) as { siblings?: readonly HubFile[] };
  const files = listed.siblings ?? [];
  const file = chooseFile(
    files.map(({ rfilename }) => rfilename),
    name.quant,
  );
  if (file === undefined) {
    throw new AddressError(
      `${name.repository} has no GGUF file${name.quant ? ` of ${name.quant}` : ''}; look at ${HUB}/${name.repository}`,
    );
  }
  const parts = partsOf(file);
  const sha256 = parts.length === 1 ? files.find(({ rfilename }) => rfilename === file)?.lfs?.sha256 : undefined;
  return {
    name: file.split('/').pop()!,
    urls: parts.map((part) => resolveUrl(name.repository, part)),
    ...(sha256 !== undefined && { sha256 }),
  };
}

/** The addresses that a text means. */
export async function resolveAddress(text: string, signal?: AbortSignal): Promise<Resolved> {
  const trimmed = text.trim();
  const name = hubName(trimmed);
  if (name?.file !== undefined) {
    const urls = partsOf(name.file).map((part) => resolveUrl(name.repository, part));
    return { name: name.file.split('/').pop()!, urls };
  }
  if (name !== undefined) return ask(name, signal);
  let url: URL;
  try {
    url = new URL(trimmed);
  } catch {
    throw new AddressError('this is no address; write https://HOST/FILE.gguf or hf:OWNER/REPO');
  }
  const local = ['localhost', '127.0.0.1'].includes(url.hostname) || url.origin === location.origin;
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local)) {
    throw new AddressError('a page may only read from https addresses and from this computer; use https');
  }
  const file = decodeURIComponent(url.pathname.split('/').pop() ?? '') || url.hostname;
  return { name: file, urls: partsOf(url.href.split('?')[0]!).length > 1 ? partsOf(url.href) : [url.href] };
}
