import type { SqlSession } from "../../../domain/sql-session.ts";
import type { FollowedTable } from "../../../sql-analysis/follow-plan.ts";
import type { WatchedPosition } from "../../follower.ts";
import type { ChangesState, ScriptRequest, WaitingAtSource } from "../../inspector.ts";
import { mergedTables, type RecordedTable, recordedName, watchedTables } from "./recorder.ts";
import type { RecordingProblem } from "./recording-problems.ts";

/** What people are told about the recording of changes: how far it goes, what completes it, and what waits. */
export interface ChangesInspection {
  state(session: SqlSession, tables: readonly FollowedTable[]): Promise<ChangesState>;
  scriptFor(session: SqlSession, request: ScriptRequest): Promise<string>;
  waiting(session: SqlSession, positions: readonly WatchedPosition[]): Promise<WaitingAtSource>;
}

/** Of several pipelines together, without those whose changes are left to the sweep. */
export function recordedTables(tables: readonly FollowedTable[]): readonly RecordedTable[] {
  return mergedTables(watchedTables(tables));
}

export function stateOf(
  wanted: readonly RecordedTable[],
  problems: readonly RecordingProblem[],
  warnings: readonly string[],
): ChangesState {
  const tables = wanted.map((table) => {
    const own = problems.filter(({ relation }) => relation === recordedName(table));
    const [problem] = own;
    return {
      table: recordedName(table),
      state: problem?.problem ?? ("recorded" as const),
      reason: problem === undefined ? null : own.map(({ message }) => message).join(" "),
    };
  });
  return { tables, warnings };
}

export async function readerOf(session: SqlSession): Promise<string> {
  const { rows } = await session.query("SELECT current_user::text AS reader");
  return String(rows[0]?.["reader"]);
}

/** Told where something could be taken away, and some pipelines are left out. */
export const NOT_JUDGED = "Nothing is taken away while a pipeline is left out: it may need what the others do not.";

/** Of a difference. */
export function asComments(lines: readonly string[]): string {
  const told = lines.length === 0 ? ["The source records everything that its pipelines need."] : lines;
  return told.map((line) => `-- ${line.replace(/\s+/g, " ")}\n`).join("");
}
