import type { SqlSession } from "../../../../domain/sql-session.ts";
import type { WatchedPosition } from "../../../follower.ts";
import type { ScriptRequest, WaitingAtSource, WaitingChanges } from "../../../inspector.ts";
import { sourceError } from "../../read-session.ts";
import {
  asComments,
  type ChangesInspection,
  NOT_JUDGED,
  readerOf,
  recordedTables,
  stateOf,
} from "../changes-inspection.ts";
import { recordedName } from "../recorder.ts";
import { readSlotRecording } from "./facts.ts";
import { slotProblems, slotRemarks } from "./problems.ts";
import { scanBehind, type WaitingFor } from "./scan.ts";
import { slotRemovalScript, slotScript, unpublishingScript } from "./script.ts";
import { readSnapshotText } from "./snapshot.ts";

/** What people are told about a slot. */
export function inspectSlot(slot: string): ChangesInspection {
  return {
    async state(session, tables) {
      const wanted = recordedTables(tables);
      const facts = await readSlotRecording(session, slot, wanted, []);
      return stateOf(wanted, slotProblems(facts, slot, wanted), slotRemarks(facts, slot));
    },
    scriptFor: (session, request) => scriptFor(session, slot, request),
    waiting: (session, positions) => waitingBehind(session, slot, positions),
  };
}

async function scriptFor(
  session: SqlSession,
  slot: string,
  { purpose, tables, isComplete }: ScriptRequest,
): Promise<string> {
  if (purpose === "remove") return slotRemovalScript(slot);
  const wanted = recordedTables(tables);
  const surplus = (await session.query(PUBLISHED, [slot])).rows
    .map((row) => parsed(row))
    .filter(({ owners }) => !wanted.some((one) => owners.includes(recordedName(one))));
  const kept = isComplete ? [] : surplus;
  const whole = async (): Promise<string> =>
    wanted.length === 0 ? "" : slotScript({ name: slot, tables: wanted, kept, reader: await readerOf(session) });
  if (purpose === "install") return whole();
  const facts = await readSlotRecording(session, slot, wanted, []);
  const problems = new Set(slotProblems(facts, slot, wanted).map(({ message }) => message));
  const abandoned = isComplete ? surplus : [];
  const remarks = [
    ...problems,
    ...abandoned.flatMap(abandonedRemarks),
    ...(kept.length > 0 ? [NOT_JUDGED] : []),
    ...(wanted.length === 0 && facts.slot !== undefined ? [NOBODY(slot)] : []),
  ];
  // Where something is put right the publication is given its whole list again, so nothing less than all of it will do.
  if (problems.size > 0) return `${asComments(remarks)}${await whole()}`;
  return `${asComments(remarks)}${abandoned.length > 0 ? unpublishingScript(slot, abandoned) : ""}`;
}

const NOBODY = (slot: string): string =>
  `No pipeline follows this source any more, so nobody moves the slot ${slot}: take it away with --remove before what it keeps fills the disk.`;

interface PublishedTable {
  readonly schema: string;
  readonly name: string;
  /** Quoted; the parts of it whose replica identity is another than the default. */
  readonly identities: readonly string[];
  /** Its name, and those of the tables that it is a partition of: one without a primary key is published by its partitions. */
  readonly owners: readonly string[];
}

/** By its own name, and not together with one that it inherits from. */
const PUBLISHED = `
  SELECT n.nspname AS schema, c.relname AS name,
         (SELECT coalesce(jsonb_agg(part.oid::regclass::text ORDER BY part.oid), '[]')
            FROM (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) AS t (oid)
            JOIN pg_class part ON part.oid = t.oid AND part.relkind = 'r' AND part.relreplident <> 'd')::text AS identities,
         (SELECT jsonb_agg(jsonb_build_object('schema', s.nspname, 'name', o.relname))
            FROM (SELECT c.oid UNION SELECT relid FROM pg_partition_ancestors(c.oid)) AS t (oid)
            JOIN pg_class o ON o.oid = t.oid JOIN pg_namespace s ON s.oid = o.relnamespace)::text AS owners
    FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE p.pubname = $1
     AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_publication_rel above ON above.prrelid = i.inhparent
                      WHERE i.inhrelid = c.oid AND above.prpubid = p.oid)
   ORDER BY 1, 2`;

function parsed(row: Record<string, unknown>): PublishedTable {
  const identities = JSON.parse(String(row["identities"])) as string[];
  const owners = JSON.parse(String(row["owners"])) as Pick<PublishedTable, "schema" | "name">[];
  return { schema: String(row["schema"]), name: String(row["name"]), identities, owners: owners.map(recordedName) };
}

function abandonedRemarks(table: PublishedTable): readonly string[] {
  const gone = `No pipeline follows ${recordedName(table)} any more: this script takes it out of the publication.`;
  const [first] = table.identities;
  if (first === undefined) return [gone];
  const back = `ALTER TABLE ${first} REPLICA IDENTITY DEFAULT sets it back where nobody else needs it`;
  const more = table.identities.length > 1 ? ", and so for its other partitions" : "";
  return [gone, `The replica identity of ${recordedName(table)} stays as it is: ${back}${more}.`];
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
