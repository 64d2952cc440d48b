import type { PostgresSourceConfig } from "../read-session.ts";
import type { ChangeLog } from "./change-log.ts";
import { slotLog } from "./slot/slot-log.ts";
import { changeTableLog } from "./table-log.ts";

/** The log that the source is configured with. */
export function openChangeLog(config: PostgresSourceConfig): ChangeLog {
  return config.changes?.kind === "slot" ? slotLog(config, config.changes.name) : changeTableLog();
}
