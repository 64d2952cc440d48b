import { createHash } from "node:crypto";

/** A number of 52 bits that stands for an id. The chance that two of a million ids share one is one in ten thousand. */
export function hashOf(id: string): number {
  const digest = createHash("md5").update(id).digest();
  return digest.readUIntBE(0, 6) * 16 + (digest.readUInt8(6) & 15) + 1;
}

/** Numbers in 8 to 16 bytes each, where a Set takes several times as much: there is one for each row of a source. */
export class NumberSet {
  #slots = new Float64Array(1024);
  #size = 0;

  has(value: number): boolean {
    return this.#slots[this.#slotOf(value)] === value;
  }

  /** False when it was already there. */
  add(value: number): boolean {
    const slot = this.#slotOf(value);
    if (this.#slots[slot] === value) return false;
    this.#slots[slot] = value;
    this.#size += 1;
    if (this.#size * 2 > this.#slots.length) this.#grow();
    return true;
  }

  /** Where the value is, or where it belongs; 0 marks a free slot, and no hash is 0. */
  #slotOf(value: number): number {
    const mask = this.#slots.length;
    let slot = value % mask;
    while (this.#slots[slot] !== 0 && this.#slots[slot] !== value) slot = (slot + 1) % mask;
    return slot;
  }

  #grow(): void {
    const values = this.#slots.filter((value) => value !== 0);
    this.#slots = new Float64Array(this.#slots.length * 2);
    for (const value of values) this.#slots[this.#slotOf(value)] = value;
  }
}
