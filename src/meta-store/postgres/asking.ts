import { databaseError } from "../../postgres/errors.ts";

/** A method of the port. What the driver throws becomes an error of the catalogue that says what was being done. */
export function asking<Asked extends unknown[], Answer>(
  what: string,
  answer: (...asked: Asked) => Promise<Answer>,
): (...asked: Asked) => Promise<Answer> {
  return async (...asked) => {
    try {
      return await answer(...asked);
    } catch (error) {
      throw databaseError(error, what);
    }
  };
}
