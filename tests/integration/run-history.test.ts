import { afterEach, beforeEach, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench({ RUN_HISTORY_DAYS: "30", RUNNER_POLL_SECONDS: "1" });
  await bench.query("CREATE TABLE content.film AS SELECT 1 AS id, 'a' AS title");
});
afterEach(() => bench.close());

/** A run that ended so many days ago. */
async function runOf(
  { id }: Pipeline,
  status: "SUCCESS" | "FAILED",
  daysAgo: number,
  kind: "load" | "restore" | "reconcile" = "load",
): Promise<string> {
  const [run] = await bench.query(
    `INSERT INTO etl.etl_runs (pipeline_id, attempt, status, trigger, config_version, runner_id, lease_epoch,
                               started_at, finished_at, error_code, error, kind, requested_by, requested_at, verdict, report)
     SELECT $1, 1, $2, 'api', 1, gen_random_uuid(), 1, now() - make_interval(days => $3), now() - make_interval(days => $3),
            CASE WHEN $2 = 'FAILED' THEN 'INTERNAL' END, CASE WHEN $2 = 'FAILED' THEN 'x' END, $4,
            CASE WHEN $4 = 'reconcile' THEN 'me' END, CASE WHEN $4 = 'reconcile' THEN now() END,
            CASE WHEN $4 = 'reconcile' THEN 'MATCH' END, CASE WHEN $4 = 'reconcile' THEN '{}'::jsonb END RETURNING id`,
    [id, status, daysAgo, kind],
  );
  const runId = run?.["id"] as string;
  await bench.query(
    "INSERT INTO etl.etl_run_logs (run_id, at, level, message, fields) VALUES ($1, now(), 'info', 'said', '{}')",
    [runId],
  );
  return runId;
}

const ids = async (): Promise<unknown[]> =>
  (await bench.query("SELECT id FROM etl.etl_runs ORDER BY started_at")).map(({ id }) => id);

it("R9 old runs are deleted with their logs; what still tells something stays", async () => {
  const config = { source_query: "SELECT id, title FROM content.film", target_key: ["id"] };
  const alive = await bench.create(config);
  const broken = await bench.create(config);
  await runOf(alive, "SUCCESS", 90);
  await runOf(alive, "FAILED", 80);
  const withRejects = await runOf(alive, "SUCCESS", 70);
  await bench.query(
    "INSERT INTO etl.etl_rejects (pipeline_id, run_id, row, error_code, error) VALUES ($1, $2, '{}', 'ROW_REFUSED', 'x')",
    [alive.id, withRejects],
  );
  const recent = [await runOf(alive, "FAILED", 20), await runOf(alive, "SUCCESS", 10)];
  const lastSuccess = await runOf(broken, "SUCCESS", 60);
  const since = await runOf(broken, "FAILED", 50);
  // No other kind makes the target fresher; each kind is kept for itself.
  await runOf(broken, "SUCCESS", 46, "reconcile");
  const compared = await runOf(broken, "SUCCESS", 45, "reconcile");
  const restored = await runOf(broken, "SUCCESS", 44, "restore");
  await bench.startRunner();
  await until("the old ones are gone", async () => (await ids()).length === 7);
  expect(await ids()).toEqual([withRejects, lastSuccess, since, compared, restored, ...recent]);
  expect(await bench.query("SELECT count(*)::int AS lines FROM etl.etl_run_logs")).toEqual([{ lines: 7 }]);
});
