import type pg from "pg";
import type {
  ChangeCount,
  ChangeLog,
  LogPlace,
  RoundImages,
} from "../../src/connectors/postgres/changes/change-log.ts";
import { changesScript } from "../../src/connectors/postgres/changes/script.ts";
import { slotRemovalScript, slotScript } from "../../src/connectors/postgres/changes/slot/script.ts";
import { slotLog } from "../../src/connectors/postgres/changes/slot/slot-log.ts";
import { changeTableLog } from "../../src/connectors/postgres/changes/table-log.ts";
import type { FollowedTable } from "../../src/sql-analysis/follow-plan.ts";
import type { TestDatabase } from "../support/database.ts";
import { sourceConfig } from "../support/followed-source.ts";
import { TABLES } from "./schema.ts";

/** Where the changes of a round come from: either log of Vitrina, read as a round of the engine reads it. */
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
  /** Those of which nothing but that is known: they were truncated. */
  readonly emptied: ReadonlySet<string>;
  newImages(): RoundImages;
}

const BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ";
const SLOT = "property";
const WHOLE_TABLES = Object.entries(TABLES).map(([name, columns]): FollowedTable => {
  const imageColumns = Object.entries(columns).map(([column, type]) => ({ name: column, type }));
  return { schema: "content", name, imageColumns, readColumns: Object.keys(columns), change: { kind: "everything" } };
});

const readerOf = ({ url }: TestDatabase): string => new URL(url).username;

export async function byChangeTable(database: TestDatabase): Promise<ChangeRecorder> {
  await database.query(changesScript({ tables: WHOLE_TABLES, reader: readerOf(database) }));
  return recorderOf(changeTableLog(), async () => undefined);
}

export async function bySlot(database: TestDatabase): Promise<ChangeRecorder> {
  await database.query(slotScript({ name: SLOT, tables: WHOLE_TABLES, reader: readerOf(database) }));
  const log = slotLog(sourceConfig(database.url), SLOT);
  const recorder = recorderOf(log, async ({ lsn }) => {
    // As the watcher does for a mart that has come this far; before its time, so that nothing is found twice by chance.
    await database.query(
      `SELECT pg_replication_slot_advance('${SLOT}', $1::pg_lsn) FROM pg_replication_slots
        WHERE slot_name = '${SLOT}' AND confirmed_flush_lsn < $1::pg_lsn`,
      [lsn],
    );
  });
  return {
    ...recorder,
    async close() {
      await recorder.close();
      await database.query(slotRemovalScript(SLOT));
    },
  };
}

function recorderOf(log: ChangeLog, forget: (place: LogPlace) => Promise<void>): ChangeRecorder {
  const begin = async (client: pg.Client) => {
    const round = await log.begin(client, BEGIN);
    const recording = await round.read(WHOLE_TABLES, []);
    if (recording.problems.length > 0) throw new Error(JSON.stringify(recording.problems));
    return round.changesOf(WHOLE_TABLES, recording);
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
      await forget(place);
      const namesOf = (counts: readonly ChangeCount[]): ReadonlySet<string> =>
        new Set(counts.map(({ relation }) => relation.replace("content.", "")));
      const emptied = namesOf(found.counts.filter(({ isTruncated }) => isTruncated));
      return { place, touched: namesOf(found.counts), emptied, newImages: () => found.images() };
    },
    close: () => log.close(),
  };
}
