import { VitrinaError } from "../../../domain/error-catalogue.ts";
import type { Client } from "../../../postgres/connection.ts";
import { sqlState } from "../../../postgres/errors.ts";
import type { FollowedTable } from "../../../sql-analysis/follow-plan.ts";
import { rememberingPlans } from "../read-session.ts";
import type { ChangeLog, Recording, RoundChanges } from "./change-log.ts";
import { countChanges, findChanged, imagesSince, readSnapshot, whyChangesAreLost } from "./change-table.ts";
import { triggerPrints } from "./fingerprint.ts";
import { CHANGES_SCHEMA, recordedName, watchedTables } from "./recorder.ts";
import { type RecordingFacts, readRecording } from "./recording.ts";
import { recordingProblems } from "./recording-problems.ts";

/** The change table that triggers fill. */
export function changeTableLog(): ChangeLog {
  return {
    async begin(client, beginning) {
      await lockChanges(client, beginning);
      let facts: RecordingFacts | undefined;
      return {
        async read(tables, named): Promise<Recording> {
          facts = await readRecording(rememberingPlans(client), tables, named);
          const { oid, mark } = facts.changes;
          const prints = { "change table": `${oid} ${mark}`, ...triggerPrints(facts.parts) };
          return { facts, problems: recordingProblems(facts, tables), prints };
        },
        changesOf: (tables, recording) =>
          readChanges(client, tables, { ...recording, isFull: facts?.changes.isFull !== false }),
      };
    },
    async hasChangedSince(session, position, tables) {
      const relations = watchedTables(tables).map(recordedName);
      try {
        return (await findChanged(session, [{ position, tables: relations }])).size > 0;
      } catch (error) {
        // The next round says what is missing.
        if (NOT_THERE.includes(sqlState(error) ?? "")) return true;
        throw error;
      }
    },
    close: async () => undefined,
  };
}

const NOT_THERE = ["42P01", "3F000", "42501"];

/** TRUNCATE does not leave old rows for those who have an old snapshot, so no part may be emptied from now on. */
async function lockChanges(client: Client, beginning: string): Promise<void> {
  try {
    await client.query(`${beginning}; LOCK TABLE ${CHANGES_SCHEMA}.changes IN ACCESS SHARE MODE`);
  } catch (error) {
    if (!NOT_THERE.includes(sqlState(error) ?? "")) throw error;
    const reason = sqlState(error) === "42501" ? "the role that reads it may not use it" : "it is not installed";
    throw new VitrinaError("CHANGES_NOT_RECORDED", `The source has no change table: ${reason}.`, { cause: error });
  }
}

async function readChanges(
  client: Client,
  all: readonly FollowedTable[],
  { facts, isFull }: Recording & { readonly isFull: boolean },
): Promise<RoundChanges> {
  const tables = watchedTables(all);
  const relations = tables.map(recordedName);
  const { database, ...place } = await readSnapshot(client, relations);
  return {
    database,
    place,
    async since(earlier, limit) {
      if (isFull)
        return { kind: "lost", reason: "The change table was full, or somebody emptied it: changes are missing." };
      const reason = await whyChangesAreLost(client, place.snapshot, earlier, relations);
      if (reason !== undefined) return { kind: "lost", reason };
      const counts = await countChanges(client, earlier.snapshot, tables, limit + 1);
      const images = imagesSince(earlier.snapshot, all, facts.columns);
      return { kind: "found", counts, images: () => ({ images, values: [] }) };
    },
  };
}
