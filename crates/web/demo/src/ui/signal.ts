/** A value that tells its watchers when it changes. */
export class Signal<T> {
  #value: T;
  readonly #watchers = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set value(value: T) {
    if (Object.is(this.#value, value)) return;
    this.#value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  /** Calls `watcher` now and after each change, until the returned function is called. */
  watch(watcher: (value: T) => void): () => void {
    this.#watchers.add(watcher);
    watcher(this.#value);
    return () => this.#watchers.delete(watcher);
  }
}
