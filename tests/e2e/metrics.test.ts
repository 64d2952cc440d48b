import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type MetricsScenario, playMetricsScenario } from "../support/metrics-scenario.ts";
import type { Family } from "../support/scrape.ts";

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

describe("R9 the metrics of the API", () => {
  it("tell the status, the last success, the watermark and the rejects of each pipeline", async () => {
    const { api, database } = scenario;
    const names = ["by_slot", "changes", "compared", "failing", "followed", "pushed", "refusing", "streamed", "taken"];
    expect(api.labelValues("vitrina_pipeline_status", "pipeline")).toEqual(names);
    for (const pipeline of names) {
      const ill = pipeline === "failing";
      expect(api.value("vitrina_pipeline_status", { pipeline, status: "FAILED" }), pipeline).toBe(ill ? 1 : 0);
      expect(api.value("vitrina_pipeline_status", { pipeline }), pipeline).toBe(1);
      const [last] = await database.query(
        `SELECT extract(epoch FROM max(r.finished_at))::float8 AS at FROM etl.etl_runs r JOIN etl.etl_pipelines p ON p.id = r.pipeline_id
          WHERE p.name = $1 AND r.status = 'SUCCESS'`,
        [pipeline],
      );
      const shown = api.value("vitrina_pipeline_last_success_timestamp_seconds", { pipeline });
      expect(shown, pipeline).toBe(last?.["at"] ?? 0);
    }
    const [refused] = await database.query("SELECT count(*)::int AS rows FROM etl.etl_rejects");
    expect(refused?.["rows"]).toBe(11);
    expect(api.value("vitrina_pipeline_last_run_rejected_rows")).toBe(11);
    expect(api.labelValues("vitrina_pipeline_watermark_timestamp_seconds", "pipeline")).toEqual(["changes"]);
    expect(api.labelValues("vitrina_pipeline_due_timestamp_seconds", "pipeline")).toEqual(["changes"]);
  });

  it("tell how far behind a mart is that follows, and what sweeps repaired", () => {
    for (const metric of ["lag_seconds", "changes_waiting", "repaired_rows"]) {
      expect(scenario.api.labelValues(`vitrina_follow_${metric}`, "pipeline"), metric).toEqual(["by_slot", "followed"]);
      expect(scenario.api.value(`vitrina_follow_${metric}`), metric).toBe(0);
    }
    expect(scenario.api.value("vitrina_follow_last_compare_timestamp_seconds")).toBeGreaterThan(0);
  });

  it("tell which sources answer about their changes", () => {
    expect(scenario.api.labelValues("vitrina_follow_source_answers", "connection")).toEqual(["main", "shop"]);
    for (const connection of ["main", "shop"])
      expect(scenario.api.value("vitrina_follow_source_answers", { connection }), connection).toBe(1);
  });

  it("tell how much WAL a source keeps for the slot that is followed", () => {
    expect(scenario.api.labelValues("vitrina_follow_slot_kept_bytes", "connection")).toEqual(["shop"]);
    expect(scenario.api.value("vitrina_follow_slot_kept_bytes", { slot: "vitrina" })).toBeGreaterThan(0);
  });

  it("tell that one runner lives; the one that was stopped signed off", () => {
    expect(scenario.api.value("vitrina_runners", { state: "alive" })).toBe(1);
    expect(scenario.api.value("vitrina_runners", { state: "lost" })).toBe(0);
  });
});

const isOurs = (name: string): boolean => name.startsWith("vitrina_");
const LABELS_OF_PROMETHEUS = ["job", "instance"];

/** The families of both kinds of process, ours first told by the API. */
const families = (): ReadonlyMap<string, Family> => new Map([...scenario.runner.families, ...scenario.api.families]);

function labelsOf({ samples }: Family): string[] {
  return [...new Set(samples.flatMap(({ labels }) => Object.keys(labels)))].filter((label) => label !== "le").sort();
}

describe("docs/METRICS.md", () => {
  const PAGE = new URL("../../docs/METRICS.md", import.meta.url);
  const TABLE = /(?<=<!-- table -->\n).*(?=<!-- end of table -->)/s;

  it("has every metric that API and runner show (UPDATE_DOCS=1 rewrites it)", async () => {
    const rows = [...families()]
      .filter(([name]) => isOurs(name))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, family]) => {
        const where = ["api", "runner"].filter((part) => scenario[part as "api" | "runner"].families.has(name));
        const labels = labelsOf(family).map((label) => `\`${label}\``);
        return [`\`${name}\``, family.type, labels.join(", ") || "–", where.join(", "), family.help];
      });
    const head = ["metric", "type", "labels", "from", "meaning"];
    const table = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
    const text = await readFile(PAGE, "utf8");
    if (process.env["UPDATE_DOCS"] === "1")
      await writeFile(
        PAGE,
        text.replace(TABLE, () => table),
      );
    expect(TABLE.exec(await readFile(PAGE, "utf8"))?.[0]).toBe(table);
  });

  it("names every alert", async () => {
    const text = await readFile(PAGE, "utf8");
    const listed = [...text.matchAll(/^\| `(Vitrina\w+)` \|/gm)].map(([, name]) => name);
    expect(listed).toEqual((await readRules()).map(({ alert }) => alert));
  });
});

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const deployed = (file: string): Promise<string> => readFile(new URL(`../../deploy/${file}`, import.meta.url), "utf8");

async function readRules(): Promise<AlertRule[]> {
  return parse(await deployed("prometheus/alerts.yml")).groups.flatMap(({ rules }: { rules: AlertRule[] }) => rules);
}

/** What an expression asks for that no process shows: metrics, their labels, and values of labels. */
function unknownIn(expr: string): string[] {
  const known = families();
  const selectors = [...expr.matchAll(/\b((?:vitrina|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
  return selectors.flatMap(([, sample = "", matchers = ""]) => {
    const family = known.get(sample) ?? known.get(sample.replace(/_(bucket|sum|count)$/, ""));
    const samples = family?.samples.filter(({ name }) => name === sample) ?? [];
    if (samples.length === 0) return [sample];
    const labels = [...matchers.matchAll(/(\w+)(=~?)"([^"]*)"/g)];
    return labels
      .filter(([, label = "", operator, value]) => {
        const isShown = (shown: string | undefined): boolean =>
          operator === "=" ? shown === value : shown !== undefined;
        return !LABELS_OF_PROMETHEUS.includes(label) && !samples.some((one) => isShown(one.labels[label]));
      })
      .map(([matcher]) => `${sample}{${matcher}}`);
  });
}

describe("R9 what watches the metrics", () => {
  it("finds a metric, a label and a value that do not exist", () => {
    expect(unknownIn("sum(rate(vitrina_nothing_total[5m])) / vitrina_runners")).toEqual(["vitrina_nothing_total"]);
    expect(unknownIn('vitrina_runners{state="dead"} or vitrina_runners{mood="alive"}')).toEqual([
      'vitrina_runners{state="dead"}',
      'vitrina_runners{mood="alive"}',
    ]);
    expect(unknownIn("vitrina_run_duration_seconds")).toEqual(["vitrina_run_duration_seconds"]);
  });

  it("the alerts ask only for what real processes show, and say what it means and what to do", async () => {
    const rules = await readRules();
    expect(rules.length).toBeGreaterThan(9);
    for (const { alert, expr, annotations } of rules) {
      expect(unknownIn(expr), alert).toEqual([]);
      expect(Object.keys(annotations), alert).toEqual(["summary", "description", "action"]);
    }
  });

  it("every alert has a test that it fires", async () => {
    const tests = await deployed("prometheus/alerts.test.yml");
    for (const { alert } of await readRules()) expect(tests).toContain(`alertname="${alert}"`);
  });

  it("the dashboard asks only for what real processes show", async () => {
    const { panels } = JSON.parse(await deployed("grafana/vitrina.json")) as { panels: Panel[] };
    const charts = panels.filter(({ type }) => type !== "row");
    expect(charts.length).toBeGreaterThan(20);
    for (const { title, targets } of charts) {
      expect(targets?.length, title).toBeGreaterThan(0);
      for (const { expr } of targets ?? []) expect(unknownIn(expr), title).toEqual([]);
    }
  });

  it("the dashboard leaves out no metric of ours", async () => {
    const text = await deployed("grafana/vitrina.json");
    expect([...families().keys()].filter((name) => isOurs(name) && !text.includes(name))).toEqual([]);
  });

  it("no panel of the dashboard lies upon another, or beside the page", async () => {
    const { panels } = JSON.parse(await deployed("grafana/vitrina.json")) as { panels: Panel[] };
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
    }
  });
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}
