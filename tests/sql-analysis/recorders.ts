import type pg from "pg";
import type { LogPlace, RoundImages } from "../../src/connectors/postgres/changes/change-log.ts";
import { slotRemovalScript, slotScript } from "../../src/connectors/postgres/changes/slot/script.ts";
import { slotLog } from "../../src/connectors/postgres/changes/slot/slot-log.ts";
import type { FollowedTable, ImagesOf } from "../../src/sql-analysis/follow-plan.ts";
import type { TestDatabase } from "../support/database.ts";
import { sourceConfig } from "../support/followed-source.ts";
import { TABLES } from "./schema.ts";

/** Where the changes of a round come from: triggers as simple as they can be, or a slot as Vitrina reads it. */
export interface ChangeRecorder {
  now(client: pg.Client): Promise<LogPlace>;
  /** Begins the transaction of a round. */
  begin(client: pg.Client, since: LogPlace): Promise<RecordedChanges>;
  close(): Promise<void>;
}

export interface RecordedChanges {
  readonly place: LogPlace;
  /** The tables that have changed. */
  readonly touched: ReadonlySet<string>;
  newImages(): RoundImages;
}

const BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ";

async function snapshotNow(client: pg.Client): Promise<LogPlace> {
  const { rows } = await client.query("SELECT pg_current_snapshot()::text AS snapshot");
  return { snapshot: String(rows[0]?.snapshot), lastChange: null, forgotten: {} };
}

export const byTriggers: ChangeRecorder = {
  now: snapshotNow,
  async begin(client, { snapshot }) {
    await client.query(BEGIN);
    const place = await snapshotNow(client);
    const changed = await client.query(
      `SELECT DISTINCT relation FROM marts.changes WHERE NOT pg_visible_in_snapshot(xid, $1::pg_snapshot)`,
      [snapshot],
    );
    const touched = new Set(changed.rows.map(({ relation }) => String(relation)));
    return { place, touched, newImages: () => ({ images: imagesSince(snapshot), values: [] }) };
  },
  close: async () => undefined,
};

/** Rows that were recorded between a snapshot and now. */
function imagesSince(snapshot: string): ImagesOf {
  return ({ schema, name }) => {
    const rows = (condition: string): string =>
      `(SELECT i.* FROM marts.changes c CROSS JOIN LATERAL jsonb_populate_record(NULL::${schema}.${name}, c.image) i
         WHERE c.relation = '${name}' AND c.xid >= pg_snapshot_xmin('${snapshot}'::pg_snapshot)
           AND NOT pg_visible_in_snapshot(c.xid, '${snapshot}'::pg_snapshot)${condition})`;
    return { changed: rows(""), old: rows(" AND c.is_old") };
  };
}

const SLOT = "property";

export async function bySlot(database: TestDatabase): Promise<ChangeRecorder> {
  const tables = Object.entries(TABLES).map(([name, columns]): FollowedTable => {
    const imageColumns = Object.entries(columns).map(([column, type]) => ({ name: column, type }));
    return { schema: "content", name, imageColumns, readColumns: Object.keys(columns), change: { kind: "everything" } };
  });
  await database.query(slotScript({ name: SLOT, tables, reader: new URL(database.url).username }));
  const log = slotLog(sourceConfig(database.url), SLOT);
  const begin = async (client: pg.Client) => {
    const round = await log.begin(client, BEGIN);
    const recording = await round.read(tables, []);
    if (recording.problems.length > 0) throw new Error(JSON.stringify(recording.problems));
    return round.changesOf(tables, recording);
  };
  return {
    async now(client) {
      const { place } = await begin(client);
      await client.query("COMMIT");
      return place;
    },
    async begin(client, since) {
      const changes = await begin(client);
      const found = await changes.since(since, 1_000_000);
      if (found.kind === "lost") throw new Error(found.reason);
      const { place } = changes;
      // As the watcher does for a mart that has come this far; before its time, so that nothing is found twice by chance.
      await database.query(
        `SELECT pg_replication_slot_advance('${SLOT}', $1::pg_lsn) FROM pg_replication_slots
          WHERE slot_name = '${SLOT}' AND confirmed_flush_lsn < $1::pg_lsn`,
        [place.lsn],
      );
      const touched = new Set(found.counts.map(({ relation }) => relation.replace("content.", "")));
      return { place, touched, newImages: () => found.images() };
    },
    async close() {
      await log.close();
      await database.query(slotRemovalScript(SLOT));
    },
  };
}
