/** Small values that outlive the page, by name. */
import { Table } from './database.js';

const table = new Table<unknown>('values');

export class Kept<T> {
  readonly #name: string;
  readonly #initial: T;

  constructor(name: string, initial: T) {
    this.#name = name;
    this.#initial = initial;
  }

  async get(): Promise<T> {
    return ((await table.get(this.#name)) as T | undefined) ?? this.#initial;
  }

  set(value: T): Promise<void> {
    return table.put(this.#name, value);
  }

  clear(): Promise<void> {
    return table.delete(this.#name);
  }
}
