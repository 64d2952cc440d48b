import { CONNECTORS } from "../../src/connectors/registry.ts";
import { type CatalogueEntry, ERROR_CATALOGUE } from "../../src/domain/error-catalogue.ts";

/** Of the catalogue, and of every connector. */
export const EVERY_ERROR: readonly (readonly [code: string, entry: CatalogueEntry])[] = [
  ...Object.entries(ERROR_CATALOGUE),
  ...CONNECTORS.sinks.flatMap(({ errors }) => Object.entries(errors)),
];
