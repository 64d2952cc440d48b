import { COPY_TASK } from "../support/chaos.ts";
import { describeFollowKills, type FollowChaos, followKills, openFollowChaos, QUERY } from "../support/chaos-follow.ts";
import { LONG } from "../support/long.ts";

/** Where a code task stands between the keys that were found and the table: the others show the same without one. */
const { round, comparison } = followKills(true);
const EVERY = { round: [...round, "batch_transformed:2"], comparison, sweep: [] };
const TYPICAL = { round: ["batch_transformed:2"], comparison: [], sweep: [] };
describeFollowKills("by rows", LONG ? EVERY : TYPICAL, openRowsChaos);

async function openRowsChaos(): Promise<FollowChaos> {
  const chaos = await openFollowChaos("rows");
  return {
    ...chaos,
    createMart(name) {
      const tasks = [
        { order_index: 1, task_type: "SQL", body: QUERY },
        { order_index: 2, task_type: "TYPESCRIPT", body: COPY_TASK },
      ];
      return chaos.createMart(name, { tasks });
    },
  };
}
