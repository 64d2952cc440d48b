import { describe, expect, it } from "vitest";
import { askedRuns } from "../support/asked-runs.ts";
import { diedAt, openChaos } from "../support/chaos.ts";
import { BATCH, createSource, ROWS } from "../support/chaos-kinds.ts";
import { LONG } from "../support/long.ts";

/** A push-down load meets rows that the target refuses, and its runner is killed after it has set some of them aside. */

const MODES = {
  full: {},
  incremental: { mode: "incremental", incremental_key: "modified", incremental_id_key: "id" },
};
/** Before the first refused rows are kept, right after, and in a later batch. */
const points = LONG ? ["checkpoint_recorded:1", "data_committed:1", "batch_applied:4"] : ["data_committed:1"];
const cases = Object.entries(MODES).flatMap(([mode, config]) => points.map((point) => ({ mode, config, point })));

/** Two in the first batch, none in the second, one in a later one. */
const BAD = ["10", "20", "1000"];

describe("SIGKILL after rows were refused by push-down", () => {
  it.for(cases)("in mode $mode at $point keeps each refused row once, and loads all others", async (one, context) => {
    const { config, point } = one;
    const chaos = await openChaos("push-down");
    context.onTestFinished(() => chaos.close());
    await createSource(chaos);
    await chaos.query(`UPDATE content.film SET title = 'bad' WHERE id IN (${BAD});
      CREATE TABLE analytics.mart (id bigint PRIMARY KEY, code text, title text CHECK (title <> 'bad'), modified timestamptz);
      ALTER TABLE analytics.mart OWNER TO vitrina_writer`);
    const pipeline = await chaos.create({
      name: "mart",
      source_query: "SELECT id, code, title, modified FROM content.film",
      target_table: "analytics.mart",
      target_key: ["id"],
      batch_size: BATCH,
      ...config,
    });
    const runner = chaos.runner(`${point}:kill`);
    await chaos.store.requests.run(pipeline.id, "api");
    await diedAt(chaos, runner, point);
    chaos.runner();
    await chaos.atRest();

    const [last, lost] = await askedRuns(chaos.store, pipeline.id);
    expect([last?.status, last?.error, lost?.error_code]).toEqual(["SUCCESS", null, "RUNNER_LOST"]);
    expect(lost?.data_path).toBe("push-down");
    expect([lost?.rows_rejected, last?.rows_rejected]).toEqual(point.startsWith("checkpoint") ? [0, 3] : [2, 1]);
    const { items } = await chaos.store.rejects.list(pipeline.id, { limit: 10 });
    expect(items.map(({ key }) => Number(key?.["id"])).sort((a, b) => a - b)).toEqual(BAD.map(Number));
    expect(new Set(items.map(({ state }) => state))).toEqual(new Set(["OPEN"]));
    const wrong = `SELECT id FROM ((SELECT id, code, title, modified FROM content.film WHERE title <> 'bad' EXCEPT ALL TABLE analytics.mart)
      UNION ALL (TABLE analytics.mart EXCEPT ALL SELECT id, code, title, modified FROM content.film WHERE title <> 'bad')) x`;
    expect(await chaos.query(wrong)).toEqual([]);
    expect(await chaos.query("SELECT count(*)::int AS n FROM analytics.mart")).toEqual([{ n: ROWS - BAD.length }]);
  });
});
