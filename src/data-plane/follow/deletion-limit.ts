import { requireAllowedDeletions } from "../../connectors/deletion-guard.ts";
import type { FollowRound } from "../../connectors/follower.ts";
import type { TargetKey } from "../../connectors/sink.ts";
import type { Load } from "../run-context.ts";
import { chunksOf, keysOfRows } from "./move-keys.ts";

/** Before the first chunk of a round deletes anything. If these keys could be too many, their rows are read twice. */
export async function guardRound(load: Load, round: FollowRound, keys: readonly TargetKey[]): Promise<void> {
  const { pipeline, writer, progress } = load;
  const guard = { allowEmpty: pipeline.allow_empty, maxDeletePercent: progress.limits.maxDeletePercent };
  await requireAllowedDeletions(pipeline.target_table, writer, guard, keys, async function* () {
    for await (const { output } of chunksOf(load, round, keys)) yield keysOfRows(load, output);
  });
}
