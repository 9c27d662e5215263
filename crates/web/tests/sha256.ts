/** SHA-256 with a state that can be kept, as the engine has it. From FIPS 180-4. */

const BLOCK = 64;

/** The first 32 bits of the fractional parts of roots of the first primes. */
function fractions(count: number, root: (prime: number) => number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes.map((prime) => (root(prime) % 1) * 2 ** 32 | 0);
}

const ROUNDS = fractions(64, Math.cbrt);
const START = fractions(8, Math.sqrt);

const SCHEDULE = new Int32Array(64);

const rotate = (x: number, by: number) => (x >>> by) | (x << (32 - by));

export class Sha256 {
  readonly #words: Int32Array;
  #tail: Uint8Array;
  #length: number;

  constructor(state?: Uint8Array) {
    const view = state && new DataView(state.buffer, state.byteOffset, state.byteLength);
    this.#words = Int32Array.from(START, (word, index) => view?.getInt32(index * 4) ?? word);
    this.#length = view?.getFloat64(32) ?? 0;
    this.#tail = state?.slice(40) ?? new Uint8Array(0);
  }

  update(bytes: Uint8Array): void {
    this.#length += bytes.length;
    const all = new Uint8Array(this.#tail.length + bytes.length);
    all.set(this.#tail);
    all.set(bytes, this.#tail.length);
    const view = new DataView(all.buffer);
    let at = 0;
    for (; at + BLOCK <= all.length; at += BLOCK) this.#block(view, at);
    this.#tail = all.slice(at);
  }

  state(): Uint8Array {
    const state = new Uint8Array(40 + this.#tail.length);
    const view = new DataView(state.buffer);
    this.#words.forEach((word, index) => view.setInt32(index * 4, word));
    view.setFloat64(32, this.#length);
    state.set(this.#tail, 40);
    return state;
  }

  digest(): string {
    const end = new Sha256(this.state());
    const padding = new Uint8Array(((119 - (this.#length % BLOCK)) % BLOCK) + 1 + 8);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, BigInt(this.#length) * 8n);
    end.update(padding);
    return Array.from(end.#words, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #block(view: DataView, at: number): void {
    const w = SCHEDULE;
    for (let t = 0; t < 64; t += 1) {
      if (t < 16) {
        w[t] = view.getInt32(at + t * 4);
        continue;
      }
      const x = w[t - 15]!;
      const y = w[t - 2]!;
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[t] = w[t - 16]! + s0 + w[t - 7]! + s1;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#words;
    for (let t = 0; t < 64; t += 1) {
      const t1 = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[t]! + w[t]!) | 0;
      const t2 = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      // The engine's hash is fast: an array for each round would be the longest part of a test.
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => (this.#words[index] = (this.#words[index]! + word) | 0));
  }
}
