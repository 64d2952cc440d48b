import type { FollowPlan, SourceInspector, TableRecording } from "../../connectors/inspector.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { CheckedQuery, Validator } from "./validator.ts";

/** How deep to look: saving only asks whether the query can be followed at all. */
type Depth = "whole" | "saving";

/** Whether every change finds its keys, whether the source records it, and whether an index leads there. */
export async function checkFollow(
  validator: Validator,
  source: SourceInspector,
  query: CheckedQuery,
  key: readonly string[],
  depth: Depth,
): Promise<void> {
  const { config, plan: taskPlan, findings } = validator;
  const isKeyKnown = key.length > 0 && key.every((name) => query.columns.some((column) => column.name === name));
  // Otherwise the checks of the key say so.
  if (config.mode !== "follow" || !query.isUsable || !isKeyKnown) return;
  const pointer = taskPlan.reader?.pointer ?? "";
  const check = { pointer, question: "how changes find their keys" };
  const plan = await findings.attempt(check, () =>
    source.followPlan({ query: query.text, columns: query.columns, key, tables: config.follow.tables }),
  );
  if (plan === undefined) return;
  for (const { table, message, wayOut, place } of plan.refusals) {
    const isDeclared = table !== null && table in config.follow.tables;
    const refused = new VitrinaError("FOLLOW_REFUSED", message, { hint: wayOut, extra: { ...place } });
    findings.add(refused, isDeclared ? "/follow/tables" : pointer);
  }
  for (const message of plan.warnings) {
    findings.add(new VitrinaError("FOLLOW_UNCERTAIN", message), pointer, "warning");
  }
  if (plan.refusals.length > 0) return;
  await checkRecording(validator, source, plan, depth);
  if (depth === "whole") await checkIndexes(validator, source, plan);
  checkSweep(validator);
}

/** Following brings changes of the source only; nothing else would ever show that a row is wrong. */
function checkSweep({ config, findings }: Validator): void {
  if (config.sweep !== null) return;
  const message =
    "Without a sweep no row is compared that no change concerns: what somebody else changes in the mart stays.";
  const hint =
    'Add sweep: "7d", or a time of your own such as sweep: "0 3 * * 0 Europe/Moscow"; it reads the whole query.';
  findings.add(new VitrinaError("FOLLOW_UNCERTAIN", message, { hint }), "/sweep", "warning");
}

async function checkRecording(
  { config, parts, findings }: Validator,
  source: SourceInspector,
  plan: FollowPlan,
  depth: Depth,
): Promise<void> {
  const check = { pointer: "/mode", question: "whether the source records its changes" };
  const found = await findings.attempt(check, () => source.changesState(plan.tables));
  if (found === undefined) return;
  for (const message of found.warnings) {
    findings.add(new VitrinaError("FOLLOW_SIDE_EFFECT", message), check.pointer, "warning");
  }
  const lacking = found.tables.filter(({ state }) => state !== "recorded");
  if (lacking.length === 0) return;
  const isOurs = parts.inspector.recordsItself(config);
  const problem = new VitrinaError("CHANGES_NOT_RECORDED", notRecorded(lacking), {
    hint: isOurs
      ? "Nothing is left for you to do: this database is Vitrina's own, and the next run installs what is missing."
      : `Once the pipeline is saved, have the owner of the source run what vitrina follow script ${config.source_connection} prints.`,
  });
  // The script is made from pipelines that are saved.
  findings.add(problem, check.pointer, isOurs || depth === "saving" ? "warning" : "error");
}

function notRecorded(tables: readonly TableRecording[]): string {
  // What is wrong with the source is said of each of its tables.
  const reasons = new Set(tables.map(({ table, reason }) => reason ?? `Changes of ${table} are not recorded.`));
  return [...reasons].join(" ");
}

/** Right without them, but as slow as a full load. */
async function checkIndexes({ findings }: Validator, source: SourceInspector, plan: FollowPlan): Promise<void> {
  const check = { pointer: "/mode", question: "whether an index leads from changes to their keys" };
  const missing = await findings.attempt(check, () => source.followIndexes(plan));
  for (const { table, scans, statement, why } of missing ?? []) {
    const problem = new VitrinaError(
      "FOLLOW_UNINDEXED",
      `To find the keys of a change of ${table}, all of ${scans} is read.`,
      {
        hint: statement === null ? (why ?? "") : `Let the owner of the source run: ${statement}.`,
      },
    );
    findings.add(problem, check.pointer, "warning");
  }
}
