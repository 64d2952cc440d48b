/**
 * Deriving a plan tries many combinations, and a text that is short enough for the guard can have more of them than
 * anybody could wait for. So the work is counted: in steps and not in seconds, because a query must not be followed on
 * one machine and refused on another.
 */

export class TooMuchWork extends Error {}

/** About two seconds of a slow machine, and a hundred times what a query of forty tables takes. */
const MOST_STEPS = 3_000_000;

/** Of the piece of work that is under way; a piece never waits for anything. */
let present: WorkBudget | undefined;

export class WorkBudget {
  #left = MOST_STEPS;

  /** Throws `TooMuchWork` when all pieces together have taken too many steps. */
  take<T>(piece: () => T): T {
    const before = present;
    present = this;
    try {
      return piece();
    } finally {
      present = before;
    }
  }

  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new TooMuchWork();
  }
}

/** Called where work may multiply: about as many steps as objects are looked at. */
export function spend(steps: number): void {
  present?.spend(steps);
}
