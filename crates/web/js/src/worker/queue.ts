/** Work on one object, one piece after the other. */

export class Queue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs work after all work that was given before. */
  run<T>(work: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
