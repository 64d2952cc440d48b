import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type MetricsScenario, playMetricsScenario } from "../support/metrics-scenario.ts";

/** What API and runners show to Prometheus, in real processes after real runs. */

let scenario: MetricsScenario;
beforeAll(async () => {
  scenario = await playMetricsScenario();
  await keepFor(process.env["METRICS_SCRAPES"]);
});
afterAll(() => scenario?.close());

/** scripts/test-metrics.mjs has promtool look at the very same scrapes. */
async function keepFor(folder: string | undefined): Promise<void> {
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  for (const name of ["api", "runner", "frozenRunner"] as const)
    await writeFile(join(folder, `${name}.txt`), scenario[name].text);
}

/** Both runners together, as a rule with sum() sees them. */
const counted = (sample: string, labels: Record<string, string> = {}): number =>
  scenario.runner.value(sample, labels) + scenario.frozenRunner.value(sample, labels);

describe("R9 the metrics of the runners", () => {
  it("count the rows that the records of the runs count", async () => {
    const counters = ["read", "written", "unchanged", "deduplicated", "rejected", "dropped", "added", "deleted"];
    const [sums] = await scenario.database.query(
      `SELECT ${counters.map((name) => `sum(rows_${name})::int AS rows_${name}`).join(", ")} FROM etl.etl_runs`,
    );
    const shown = counters.map((name) => [`rows_${name}`, counted(`vitrina_rows_${name}_total`)]);
    expect(Object.fromEntries(shown)).toEqual(sums);
    for (const name of ["read", "written", "unchanged", "rejected", "deleted"])
      expect(sums?.[`rows_${name}`], name).toBeGreaterThan(0);
    const paths = await scenario.database.query("SELECT DISTINCT data_path FROM etl.etl_runs ORDER BY 1");
    expect(paths.map(({ data_path }) => data_path)).toEqual(["push-down", "rows", "stream", null]);
  });

  it("count runs by result, and failed ones by the code of their error, as the run history does", async () => {
    const runs = await scenario.database.query(
      "SELECT status, error_code, count(*)::int FROM etl.etl_runs GROUP BY 1, 2",
    );
    const inHistory = (status: string): number =>
      runs.filter((run) => run["status"] === status).reduce((sum, run) => sum + Number(run["count"]), 0);
    expect(counted("vitrina_runs_total", { result: "success" })).toBe(inHistory("SUCCESS"));
    expect(counted("vitrina_runs_total", { result: "failed" })).toBe(inHistory("FAILED"));
    expect(scenario.runner.labelValues("vitrina_run_failures_total", "code")).toEqual([
      "RUNNER_LOST",
      "TARGET_MISSING",
    ]);
    for (const { status, error_code, count } of runs.filter((run) => run["status"] === "FAILED"))
      expect(counted("vitrina_run_failures_total", { code: String(error_code) }), String(status)).toBe(count);
  });

  it("count the lost lease of the runner that lost it", () => {
    expect(scenario.frozenRunner.value("vitrina_lease_losses_total")).toBe(1);
    expect(scenario.runner.value("vitrina_lease_losses_total")).toBe(0);
    expect(scenario.runner.value("vitrina_run_failures_total", { code: "RUNNER_LOST" })).toBe(1);
  });

  it("time batches and runs by stage", async () => {
    const [sums] = await scenario.database.query("SELECT sum(batches)::int AS batches FROM etl.etl_runs");
    expect(counted("vitrina_batch_duration_seconds_count", { stage: "write" })).toBe(sums?.["batches"]);
    expect(scenario.runner.labelValues("vitrina_batch_duration_seconds_count", "stage")).toEqual([
      "read",
      "transform",
      "write",
    ]);
    expect(scenario.runner.labelValues("vitrina_run_stage_duration_seconds_count", "stage")).toEqual([
      "batches",
      "end",
      "open",
    ]);
    const ended = ["success", "failed"].map((result) => counted("vitrina_run_duration_seconds_count", { result }));
    // The run that was taken over ended in the hands of nobody, so nobody knows how long it took.
    expect(ended).toEqual([counted("vitrina_runs_total", { result: "success" }), 1]);
  });

  it("have no label that grows with the number of pipelines or runs", () => {
    for (const { samples } of scenario.runner.families.values())
      for (const { labels } of samples) expect(Object.keys(labels)).not.toContain("pipeline");
    expect(scenario.runner.text).not.toMatch(/taken|pushed|[0-9a-f]{8}-[0-9a-f]{4}-/);
  });
});
