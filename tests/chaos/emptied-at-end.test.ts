import { expect, it } from "vitest";
import { faulted, openChaos } from "../support/chaos.ts";
import { createPipeline, createSource, differences, INCREMENTAL } from "../support/chaos-kinds.ts";
import { until } from "../support/until.ts";

it("a target that is emptied after the last batch is not taken for one that is rightly empty", async ({
  onTestFinished,
}) => {
  const chaos = await openChaos("elsewhere");
  onTestFinished(() => chaos.close());
  await createSource(chaos);
  const pipeline = await createPipeline(chaos, INCREMENTAL, "elsewhere", "mart");
  await chaos.store.requests.run(pipeline.id, "api");
  const runner = chaos.runner("load_read:1:park", { LEASE_SECONDS: "60" });
  await faulted(runner, "load_read", "park");

  // The end of the load wants to forget this position: it stops there, between two looks at the target.
  const { query } = chaos.target;
  const isBlocked = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  const holding = query(
    `DO $$ BEGIN
       PERFORM FROM analytics._vitrina_checkpoint FOR UPDATE;
       WHILE NOT EXISTS (${isBlocked}) LOOP PERFORM pg_sleep(0.05), pg_stat_clear_snapshot(); END LOOP;
       TRUNCATE ${pipeline.target_table};
     END $$`,
  );
  await until("the position is locked", async () => {
    const locks = `SELECT FROM pg_locks WHERE relation = 'analytics._vitrina_checkpoint'::regclass AND mode = 'RowShareLock' AND granted`;
    return (await query(locks)).length > 0;
  });
  runner.signal("SIGUSR2");
  await holding;
  await chaos.atRest();
  await chaos.store.requests.run(pipeline.id, "api");
  await chaos.atRest();
  expect(await differences(chaos, pipeline.target_table)).toBe(0);
});
