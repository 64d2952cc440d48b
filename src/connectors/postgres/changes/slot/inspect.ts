import type { SqlSession } from "../../../../domain/sql-session.ts";
import type { WatchedPosition } from "../../../follower.ts";
import type { WaitingAtSource, WaitingChanges } from "../../../inspector.ts";
import { sourceError } from "../../read-session.ts";
import { asComments, type ChangesInspection, readerOf, recordedTables, stateOf } from "../changes-inspection.ts";
import { type RecordedTable, recordedName, recordedNameIn } from "../recorder.ts";
import { readSlotRecording } from "./facts.ts";
import { slotProblems, slotRemarks } from "./problems.ts";
import { scanBehind, type WaitingFor } from "./scan.ts";
import { slotRemovalScript, slotScript } from "./script.ts";
import { readSnapshotText } from "./snapshot.ts";

/** What people are told about a slot. */
export function inspectSlot(slot: string): ChangesInspection {
  return {
    async state(session, tables) {
      const wanted = recordedTables(tables);
      const facts = await readSlotRecording(session, slot, wanted, []);
      return stateOf(wanted, slotProblems(facts, slot, wanted), slotRemarks(facts, slot));
    },
    async scriptFor(session, tables, purpose) {
      if (purpose === "remove") return slotRemovalScript(slot);
      const wanted = recordedTables(tables);
      const whole = async (): Promise<string> =>
        wanted.length === 0 ? "" : slotScript({ name: slot, tables: wanted, reader: await readerOf(session) });
      if (purpose === "install") return whole();
      const remarks = await differences(session, slot, wanted);
      // The publication is given its whole list again, so nothing less than all of it will do.
      return `${asComments(remarks)}${remarks.length === 0 ? "" : await whole()}`;
    },
    waiting: (session, positions) => waitingBehind(session, slot, positions),
  };
}

const SURPLUS = `
  SELECT ${recordedNameIn("n", "c")} AS relation
    FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE p.pubname = $1 AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
   ORDER BY 1`;

async function differences(
  session: SqlSession,
  slot: string,
  wanted: readonly RecordedTable[],
): Promise<readonly string[]> {
  const facts = await readSlotRecording(session, slot, wanted, []);
  const problems = new Set(slotProblems(facts, slot, wanted).map(({ message }) => message));
  const { rows } = await session.query(SURPLUS, [slot]);
  const surplus = rows
    .map(({ relation }) => String(relation))
    .filter((relation) => !wanted.some((table) => recordedName(table) === relation))
    .map((relation) => `No pipeline follows ${relation} any more: it need not be published.`);
  return [...problems, ...surplus];
}

const SLOT_NOW = `
  SELECT pg_current_snapshot()::text AS snapshot, extract(epoch FROM clock_timestamp())::text AS now,
         pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::text AS kept
    FROM pg_replication_slots s WHERE s.slot_name = $1 AND s.wal_status <> 'lost' AND NOT pg_is_in_recovery()`;

/** By the oids that the positions were taken with: a table that has others is compared as a whole anyway. */
const PARTS = `
  WITH RECURSIVE tree (relation, oid) AS (
    SELECT w.relation, w.oid FROM jsonb_to_recordset($1::jsonb) AS w (relation text, oid oid)
    UNION
    SELECT t.relation, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
  )
  SELECT relation, oid::text FROM tree`;

/** Nothing is known where there is no slot. */
async function waitingBehind(
  session: SqlSession,
  name: string,
  positions: readonly WatchedPosition[],
): Promise<WaitingAtSource> {
  const { rows } = await session.query(SLOT_NOW, [name]);
  const { snapshot, now, kept } = (rows[0] ?? {}) as Record<string, string | undefined>;
  if (snapshot === undefined || now === undefined) return { byPipeline: new Map() };
  const slot = { name, keptBytes: Number(kept) };
  try {
    const waiting = await countBehind(session, name, positions, snapshot);
    return { byPipeline: new Map(waiting.map(([id, found]) => [id, withAge(found, Number(now))])), slot };
  } catch (error) {
    // The more is kept, the longer it takes to decode, and the more somebody has to be told of it.
    const uncounted = sourceError(error);
    if (uncounted.code === "INTERNAL") throw error;
    return { byPipeline: new Map(), slot, uncounted };
  }
}

async function countBehind(
  session: SqlSession,
  slot: string,
  positions: readonly WatchedPosition[],
  snapshot: string,
): Promise<readonly (readonly [string, WaitingFor])[]> {
  const roots = positions.flatMap(({ position, tables }) =>
    tables.flatMap((relation) => {
      const oid = position.fingerprint[`table ${relation}`];
      return oid === undefined || !/^\d+$/.test(oid) ? [] : [{ relation, oid }];
    }),
  );
  const { rows: parts } = await session.query(PARTS, [JSON.stringify(roots)]);
  const { waiting } = await scanBehind(
    session,
    slot,
    readSnapshotText(snapshot),
    positions,
    parts.map(({ relation, oid }) => ({ relation: String(relation), oid: String(oid) })),
  );
  return positions.flatMap(({ pipelineId }, n) => {
    const found = waiting[n];
    return found === undefined ? [] : [[pipelineId, found] as const];
  });
}

function withAge({ changes, oldest }: WaitingFor, now: number): WaitingChanges {
  return { changes, oldestSeconds: oldest === undefined ? null : Math.max(0, now - oldest.getTime() / 1000) };
}
