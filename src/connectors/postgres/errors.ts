import { defineErrors, entry } from "../../domain/error-catalogue.ts";

export const TABLE_ERRORS = defineErrors({
  TARGET_HAS_RULES: entry(
    422,
    "never",
    "Rules of the target rewrite what is written",
    "Drop the rules (use a trigger that raises an exception instead: the rows it refuses are set aside), or choose another target.",
  ),
  TARGET_ROWS_HIDDEN: entry(
    422,
    "never",
    "Rows of the target may be hidden",
    "Let a policy allow the writer every row (USING (true) WITH CHECK (true)), or make it the owner of the table. A row that a policy refuses fails the run.",
  ),
  ROWS_LEFT_OUT: entry(
    422,
    "never",
    "A trigger of the target leaves rows out",
    "Filter these rows out of the query, or let the trigger raise an exception for them: then they are set aside as rejected.",
  ),
  TARGET_NAME_FOLDED: entry(
    422,
    "never",
    "The target's name is read in lower case",
    "Write it in lower case, or in double quotes if capitals are meant.",
  ),
  TARGET_TYPE_MAPPED: entry(
    422,
    "never",
    "A column of the new table gets another type than in the source",
    "Nothing to do if text is fine. Otherwise create the table yourself, with the type you want.",
  ),
});
