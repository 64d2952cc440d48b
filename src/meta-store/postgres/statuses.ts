import { type PipelineEvent, transitionsOf } from "../../domain/pipeline-status.ts";

/** The status machine as SQL. Statuses are literals, so that the planner sees that they fit a partial index. */

/** Those in which the event may happen, as a list for IN. */
export function allowing(event: PipelineEvent): string {
  return transitionsOf(event)
    .from.map((status) => `'${status}'`)
    .join(", ");
}

/**
 * What the event makes of the status of the row, which is that at the moment the row is locked. A join with the changes
 * would be made before, and find nothing when another request changes the status meanwhile.
 */
export function statusAfter(event: PipelineEvent, row = "p"): string {
  const { from, to } = transitionsOf(event);
  const changes = from.map((status, place) => {
    const next = to[place] ?? null;
    return `WHEN '${status}' THEN ${next === null ? `${row}.status_before` : `'${next}'`}`;
  });
  return `CASE ${row}.status ${changes.join(" ")} END`;
}

/** What waits for a runner. */
export const CLAIMABLE = allowing("claim");
