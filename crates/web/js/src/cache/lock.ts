/** Web Locks on files of the cache: one writer, or readers, over all tabs. */

export type Release = () => void;

const nameOf = (key: string) => `weft:${key}`;

/** The lock, or nothing if another has it and `options` does not wait. */
export function lock(key: string, options: LockOptions): Promise<Release | undefined> {
  return new Promise((resolve, reject) => {
    const held = (granted: Lock | null) => {
      if (granted === null) return resolve(undefined);
      return new Promise<void>((release) => resolve(release));
    };
    navigator.locks.request(nameOf(key), options, held).catch(reject);
  });
}
