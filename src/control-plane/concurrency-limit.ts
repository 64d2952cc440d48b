import { VitrinaError } from "../domain/error-catalogue.ts";

export type Limited = <T>(work: () => Promise<T>) => Promise<T>;

/** Lets a few callers work at once and turns the rest away: a queue would only make everybody wait. */
export function limitConcurrency(most: number, what: string): Limited {
  let working = 0;
  return async (work) => {
    if (working >= most) {
      throw new VitrinaError("PREVIEW_BUSY", `${most} ${what} are under way, and more are not possible at once.`);
    }
    working += 1;
    try {
      return await work();
    } finally {
      working -= 1;
    }
  };
}
