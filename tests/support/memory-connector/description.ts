import { z } from "zod";
import { defineSink } from "../../../src/connectors/description.ts";
import { matchesPattern, notAllowed } from "../../../src/connectors/targets.ts";
import { defineErrors, entry } from "../../../src/domain/error-catalogue.ts";
import { commaList, wholeNumber } from "../../../src/domain/setting-fields.ts";

/** A connector for tests: shelves in the memory of this process, to show what it takes to add one. */

export interface ShelfTarget {
  readonly kind: "memory";
  readonly shelf: string;
}

export interface ShelfSettings {
  readonly shelves: readonly string[];
  readonly mostRows: number;
}

const shelfOptions = z.strictObject({
  trim: z.boolean().optional().describe("Shelf: leave out the blanks around every value."),
});
export type ShelfOptions = z.infer<typeof shelfOptions>;

export const SHELF_ERRORS = defineErrors({
  SHELF_FULL: entry(
    507,
    "never",
    "The shelf has no room left",
    "Raise SHELF_ROWS, or let the query return fewer rows.",
  ),
});

const fields = { TARGET_SHELVES: commaList.default([]), SHELF_ROWS: wholeNumber(1, 1_000_000).default(1000) };

export const memorySink = defineSink<ShelfTarget, ShelfOptions, ShelfSettings, typeof fields>({
  kind: "memory",
  noun: "a shelf",
  prefix: "memory:",
  form: "<shelf>",
  parse(shelf) {
    if (/^[a-z_]+$/.test(shelf)) return { kind: "memory", shelf };
    throw notAllowed(`"${shelf}" is not the name of a shelf.`);
  },
  format: ({ shelf }) => shelf,
  allowList: {
    allows: ({ shelf }, { shelves }) => shelves.some((pattern) => matchesPattern(shelf, pattern)),
    list: ({ shelves }) => shelves,
    isOwn: () => false,
    pattern: /^[a-z_*]+$/,
  },
  settings: {
    section: "Shelves",
    sample: "",
    fields,
    read: ({ TARGET_SHELVES: shelves, SHELF_ROWS: mostRows }) => ({ shelves, mostRows }),
  },
  options: shelfOptions,
  errors: SHELF_ERRORS,
  can: { takesBytes: false, keepsPrevious: false },
  isConfigured: () => true,
  open: async (settings) => (await import("./sink.ts")).openMemorySink(settings),
});
