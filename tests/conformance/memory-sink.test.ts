import { randomUUID } from "node:crypto";
import type { Target } from "../../src/domain/target.ts";
import type { ShelfTarget } from "../support/memory-connector/description.ts";
import { openMemorySink, type Shelf, shelves } from "../support/memory-connector/sink.ts";
import { describeSink } from "./sink-contract.ts";

const shelfOf = (target: Target): Shelf | undefined => shelves.get((target as ShelfTarget).shelf);

/** The connector that shows how one is added keeps the contract like any other. */
describeSink("memory", () => ({
  sink: openMemorySink({ mostRows: 1000 }),
  newTarget: () => ({ kind: "memory", shelf: randomUUID() }),
  async titles(target) {
    const rows = shelfOf(target)?.rows;
    return rows && new Map([...rows.values()].map(({ id, title }) => [id as string, title as string | null]));
  },
  columns: async (target) => [...(shelfOf(target)?.columns ?? [])].sort(),
}));
