import { defineErrors, entry } from "../../domain/error-catalogue.ts";

export const SEARCH_ERRORS = defineErrors({
  SEARCH_NOT_CONFIGURED: entry(
    422,
    "never",
    "No search cluster is configured",
    "Set ELASTICSEARCH_URL in the environment of the runner.",
  ),
  SEARCH_UNAVAILABLE: entry(
    503,
    "reconnect",
    "The search cluster cannot be reached",
    "Check that it runs, and that ELASTICSEARCH_URL and the certificate are right.",
  ),
  SEARCH_BUSY: entry(
    503,
    "wait",
    "The search cluster did not finish in time",
    "This usually passes by itself; if it recurs, check the load and the disks of the cluster.",
  ),
  SEARCH_REFUSED: entry(
    422,
    "never",
    "The search cluster refused a request",
    "Correct what the detail names: the rights of the login, or mapping and settings in target_options.",
  ),
  INDEX_NOT_AN_ALIAS: entry(
    409,
    "never",
    "An index stands where an alias is needed",
    "Set target_options.adopt and run the pipeline once in mode full: then the index gives way to the new one in one step, and its documents are deleted; copy it first if you need them. Or choose another name as target.",
  ),
  INDEX_DIFFERS: entry(
    409,
    "never",
    "The index does not fit the pipeline",
    "Run the pipeline once in mode full, which builds a new index, or choose another index.",
  ),
  INDEX_INCOMPLETE: entry(
    500,
    "retry",
    "The new index does not have the documents that were written to it",
    "Nothing was switched; the next run loads everything again. Check the log of the cluster if it recurs.",
  ),
  NO_PREVIOUS_INDEX: entry(
    409,
    "never",
    "There is no previous index",
    "Only a full load leaves one, for as long as keep_previous_hours says; run the pipeline instead.",
  ),
});
