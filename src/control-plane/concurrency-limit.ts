import { VitrinaError } from "../domain/error-catalogue.ts";

export type Limited = <T>(work: () => Promise<T>) => Promise<T>;

/** Lets a few callers work at once and turns the rest away: a queue would only make everybody wait. */
export function limitConcurrency(most: number, what: string): Limited {
  let working = 0;
  return async (work) => {
    if (working >= most) {
      throw busy(most, what);
    }
    working += 1;
    try {
      return await work();
    } finally {
      working -= 1;
    }
  };
}

/** For callers that would rather wait than retry: they are served in order, or refused when it takes too long. */
export function takeTurns(most: number, what: string, patienceMs: number): Limited {
  const waiting: (() => void)[] = [];
  let working = 0;
  const turn = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(begin), 1);
        reject(busy(most, what));
      }, patienceMs);
      waiting.push(begin);
    });
  return async (work) => {
    // The place is handed on directly, so that nobody slips in between.
    if (working < most) working += 1;
    else await turn();
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) working -= 1;
      else next();
    }
  };
}

function busy(most: number, what: string): VitrinaError {
  return new VitrinaError("PREVIEW_BUSY", `${most} ${what} are under way, and more are not possible at once.`);
}
