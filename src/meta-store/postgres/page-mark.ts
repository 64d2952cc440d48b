import { VitrinaError } from "../../domain/error-catalogue.ts";

/** A mark that no page ever gave must not quietly show the first page again. */
export function invalidPageMark(): VitrinaError {
  const message = "It must be the next of the page before, as it was.";
  return new VitrinaError("INVALID_REQUEST", `The query is not valid. /after: ${message}`, {
    problems: [{ pointer: "/after", message }],
  });
}
