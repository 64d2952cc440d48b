import type { ChangesFrom } from "../../../domain/follow.ts";
import type { SqlSession } from "../../../domain/sql-session.ts";
import { sqlState } from "../../../postgres/errors.ts";
import type { FollowedTable } from "../../../sql-analysis/follow-plan.ts";
import type { WatchedPosition } from "../../follower.ts";
import type { ChangesState, ScriptRequest, WaitingAtSource, WaitingChanges } from "../../inspector.ts";
import {
  asComments,
  type ChangesInspection,
  NOT_JUDGED,
  readerOf,
  recordedTables,
  stateOf,
} from "./changes-inspection.ts";
import { type ChangesDiff, changesDiff, recordedSoFar } from "./install.ts";
import { CHANGES_SCHEMA, mergedTables, type RecordedTable, recordedName } from "./recorder.ts";
import { changesScript, detachingScript, removalScript } from "./script.ts";
import { inspectSlot } from "./slot/inspect.ts";

/** As the source is configured. */
export function inspectChanges(from: ChangesFrom | undefined): ChangesInspection {
  if (from?.kind === "slot") return inspectSlot(from.name);
  return { state: changesState, scriptFor, waiting: changesWaiting };
}

async function changesState(session: SqlSession, tables: readonly FollowedTable[]): Promise<ChangesState> {
  const wanted = recordedTables(tables);
  const { problems, hindrances, remarks } = await changesDiff(session, wanted);
  return stateOf(wanted, problems, [...hindrances.map(({ message }) => message), ...remarks]);
}

async function scriptFor(session: SqlSession, { purpose, tables, isComplete }: ScriptRequest): Promise<string> {
  if (purpose === "remove") return removalScript();
  const reader = await readerOf(session);
  const planned = recordedTables(tables);
  // Who is left out may need more of these tables than the others, and follows on where it was once it is put right.
  const wanted = isComplete ? planned : mergedTables([...(await recordedBefore(session, planned)), ...planned]);
  if (purpose === "install") return changesScript({ tables: wanted, reader });
  const diff = await changesDiff(session, wanted);
  const surplus = isComplete ? diff.surplus : [];
  const concerned = new Set([...diff.problems, ...diff.hindrances, ...surplus].map(({ relation }) => relation));
  const changed = wanted.filter((table) => concerned.has(recordedName(table)));
  const abandoned = surplus.filter(({ columns }) => columns === "all").map(({ relation }) => relation);
  return [
    asComments([...remarksOn({ ...diff, surplus }), ...(surplus.length < diff.surplus.length ? [NOT_JUDGED] : [])]),
    changed.length > 0 ? changesScript({ tables: changed, reader }) : "",
    abandoned.length > 0 ? detachingScript(abandoned) : "",
  ].join("");
}

/** A reader that is new may not look yet: the script is what lets it. */
async function recordedBefore(
  session: SqlSession,
  tables: readonly RecordedTable[],
): Promise<readonly RecordedTable[]> {
  try {
    return await recordedSoFar(session, tables);
  } catch (error) {
    if (NOT_THERE.includes(sqlState(error) ?? "")) return [];
    throw error;
  }
}

/** As comments of the script. */
function remarksOn({
  problems,
  hindrances,
  surplus,
}: Pick<ChangesDiff, "problems" | "hindrances" | "surplus">): readonly string[] {
  return [
    ...problems.map(({ message }) => message),
    ...hindrances.map(({ message }) => message),
    ...surplus.map(({ relation, columns }) =>
      columns === "all"
        ? `No pipeline follows ${relation} any more: the end of this script takes it out of the recording.`
        : `No pipeline needs ${columns.join(", ")} of ${relation} any more.`,
    ),
  ];
}

/** Beyond this they are not counted any further. */
const MOST_COUNTED = 1_000_000;

const WAITING = `
  SELECT p.n::text AS n, found.changes::text AS changes, found.seconds::text AS seconds
    FROM jsonb_to_recordset($1::jsonb) AS p (n integer, snapshot pg_snapshot, relations text[])
   CROSS JOIN LATERAL (
     SELECT count(*) AS changes, extract(epoch FROM greatest(clock_timestamp(), min(waiting.at)) - min(waiting.at)) AS seconds
       FROM (SELECT c.at FROM ${CHANGES_SCHEMA}.changes c
              WHERE c.relation = ANY (p.relations) AND c.xid >= pg_snapshot_xmin(p.snapshot)
                AND NOT pg_visible_in_snapshot(c.xid, p.snapshot)
              LIMIT ${MOST_COUNTED}) AS waiting
   ) AS found`;

const NOT_THERE = ["42P01", "3F000", "42501"];

/** Nothing is known where nothing is recorded. */
async function changesWaiting(session: SqlSession, positions: readonly WatchedPosition[]): Promise<WaitingAtSource> {
  const asked = positions.map(({ position, tables }, n) => ({ n, snapshot: position.snapshot, relations: tables }));
  const { rows } = await session.query(WAITING, [JSON.stringify(asked)]).catch((error: unknown) => {
    if (NOT_THERE.includes(sqlState(error) ?? "")) return { rows: [] };
    throw error;
  });
  const byPipeline = rows.flatMap(({ n, changes, seconds }): [string, WaitingChanges][] => {
    const one = positions[Number(n)];
    const oldestSeconds = seconds == null ? null : Number(seconds);
    return one === undefined ? [] : [[one.pipelineId, { changes: Number(changes), oldestSeconds }]];
  });
  return { byPipeline: new Map(byPipeline) };
}
