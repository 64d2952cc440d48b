/** Random but repeatable: a failure is repeated with CHAOS_SEED set to the seed that was printed. */
export interface Random {
  /** From 0 up to, but not including, `below`. */
  below(below: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
}

export function seededRandom(what: string): Random {
  const given = process.env["CHAOS_SEED"];
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
  console.info(`${what}: CHAOS_SEED=${seed}`);
  let state = seed >>> 0;
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    chance: (probability) => next() < probability,
    pick: (list) => list[below(list.length)] as (typeof list)[number],
  };
}
