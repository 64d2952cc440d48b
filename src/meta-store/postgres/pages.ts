import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Page, PageRequest } from "../ports/page.ts";

/** A mark that no page ever gave must not quietly show the first page again. */
export function invalidPageMark(): VitrinaError {
  const message = "It must be the next of the page before, as it was.";
  return new VitrinaError("INVALID_REQUEST", `The query is not valid. /after: ${message}`, {
    problems: [{ pointer: "/after", message }],
  });
}

/** Of rows that were asked for with one more than the page holds: that one tells that there is another page. */
export function pageOf<T>(found: readonly T[], { limit }: PageRequest, markOf: (last: T) => string): Page<T> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, next: found.length > limit && last !== undefined ? markOf(last) : null };
}
