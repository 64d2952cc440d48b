import type { SinkRequest } from "../../sink.ts";
import type { TargetTable } from "../target-table.ts";
import { compareLoad } from "./compare-load.ts";
import type { TableLoad } from "./load.ts";
import { newTableLoad } from "./new-table-load.ts";
import { shadowLoad } from "./shadow-load.ts";
import { upsertLoad } from "./upsert-load.ts";

/** Chooses the way into the target, for a run and for `validate`, which reports it in advance. */
export function chooseLoad(table: TargetTable, load: SinkRequest["load"]): TableLoad {
  if (load.kind === "upsert") return upsertLoad(table);
  if (!table.exists) return load.inKeyOrder ? newTableLoad(table, load.loadId) : createThenShadow(table, load.loadId);
  return load.inKeyOrder && table.rangesUseIndex ? compareLoad(table, load.loadId) : shadowLoad(table, load.loadId);
}

/** Rows in any order may repeat a key far apart, so the new table must have its key from the start. */
function createThenShadow(table: TargetTable, loadId: string): TableLoad {
  const shadow = shadowLoad(table, loadId);
  return {
    ...shadow,
    async begin(client) {
      await upsertLoad(table).begin?.(client);
      await shadow.begin?.(client);
    },
  };
}
