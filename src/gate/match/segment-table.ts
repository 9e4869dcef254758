/** Places of a new table; a power of two. */
const fewPlaces = 4;

/**
 * Values by a segment of a path. `Map` compares a text that it does not hold with texts that it holds, wherever in memory
 * they lie. Here the numbers of all texts lie side by side, and a text is compared if its number is the same: asking ten
 * thousand texts costs what asking one costs. The texts are of whoever writes the rules, so a client cannot choose them
 * to have one number.
 */
export class SegmentTable<V> {
  /** By place: the number of its text, or 0. There are at least twice as many places as texts. */
  #numbers = new Int32Array(fewPlaces);
  readonly #texts: string[] = [];
  readonly #values: V[] = [];
  /** By place: the index of its text and value. */
  #indexes = new Int32Array(fewPlaces);

  get(text: string): V | undefined {
    const number = numberOf(text);
    const numbers = this.#numbers;
    const mask = numbers.length - 1;
    for (let place = number & mask; ; place = (place + 1) & mask) {
      const found = numbers[place];
      if (found === 0) return undefined;
      const index = this.#indexes[place] ?? 0;
      if (found === number && this.#texts[index] === text) return this.#values[index];
    }
  }

  /** Adds a text that is not there yet. */
  add(text: string, value: V): void {
    const index = this.#texts.push(text) - 1;
    this.#values.push(value);
    if (this.#texts.length * 2 > this.#numbers.length) this.#grow();
    else this.#place(numberOf(text), index);
  }

  #grow(): void {
    const places = this.#numbers.length * 2;
    this.#numbers = new Int32Array(places);
    this.#indexes = new Int32Array(places);
    for (const [index, text] of this.#texts.entries()) this.#place(numberOf(text), index);
  }

  #place(number: number, index: number): void {
    const mask = this.#numbers.length - 1;
    let place = number & mask;
    while (this.#numbers[place] !== 0) place = (place + 1) & mask;
    this.#numbers[place] = number;
    this.#indexes[place] = index;
  }
}

/** FNV-1a over 32 bits, of code units, mixed once more since places are its lowest bits; never 0. */
function numberOf(text: string): number {
  let number = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) number = Math.imul(number ^ text.charCodeAt(i), 0x01000193);
  number ^= number >>> 15;
  return number === 0 ? 1 : number;
}
