import { describe, expect, it } from "vitest";
import { askedRuns } from "../support/asked-runs.ts";
import { diedAt, openChaos, type Path } from "../support/chaos.ts";
import { createSource, ROWS } from "../support/chaos-kinds.ts";

/** A runner is killed while it tries rejected rows again; another one goes on. */

const QUERY = "SELECT id, code, title, modified FROM content.film";

const paths: Path[] = ["stream", "elsewhere"];
const points = ["transaction_begun:1", "batch_applied:1", "checkpoint_recorded:1", "data_committed:1"];
const cases = paths.flatMap((path) => points.map((point) => ({ path, point })));

describe.concurrent("SIGKILL in the middle of a retry", () => {
  it.for(cases)(
    "R4.7 at $point by $path writes every row once, and loses no reject",
    async ({ path, point }, context) => {
      const chaos = await openChaos(path);
      context.onTestFinished(() => chaos.close());
      await createSource(chaos);
      await chaos.query("UPDATE content.film SET title = 'bad' WHERE id IN (10, 20, 30, 2000)");
      await chaos.target.query(`CREATE TABLE analytics.mart
      (id bigint PRIMARY KEY, code text, title text CHECK (title <> 'bad'), modified timestamptz)`);
      const pipeline = await chaos.create({
        name: "mart",
        source_query: QUERY,
        target_table: "analytics.mart",
        target_key: ["id"],
        mode: "incremental",
        incremental_key: "modified",
        incremental_id_key: "id",
      });
      const first = chaos.runner();
      await chaos.store.requests.run(pipeline.id, "api");
      await chaos.atRest();
      await first.stop();
      expect((await chaos.store.rejects.list(pipeline.id, { limit: 10 })).items).toHaveLength(4);

      await chaos.query("UPDATE content.film SET title = 'good' WHERE id IN (10, 20, 2000)");
      const { watermark } = await chaos.store.state.get(pipeline.id);
      expect(await chaos.store.rejects.retry(pipeline.id, undefined)).toBe(4);
      await diedAt(chaos, chaos.runner(`${point}:kill`), point);
      chaos.runner();
      await chaos.atRest();

      const rows = "SELECT id, title FROM analytics.mart WHERE title IN ('good', 'bad') ORDER BY id";
      expect(await chaos.target.query(rows)).toEqual(["10", "20", "2000"].map((id) => ({ id, title: "good" })));
      expect(await chaos.target.query("SELECT count(*)::int AS n FROM analytics.mart")).toEqual([{ n: ROWS - 1 }]);
      const left = (await chaos.store.rejects.list(pipeline.id, { limit: 10 })).items;
      expect(left.map(({ key, state }) => ({ key, state }))).toEqual([{ key: { id: "30" }, state: "OPEN" }]);
      expect((await chaos.store.state.get(pipeline.id)).watermark).toEqual(watermark);
      const [last, lost] = await askedRuns(chaos.store, pipeline.id);
      expect([last?.status, lost?.error_code]).toEqual(["SUCCESS", "RUNNER_LOST"]);
    },
  );
});
