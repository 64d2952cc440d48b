import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pipeline } from "../../../src/domain/pipeline.ts";
import { askedRuns } from "../../support/asked-runs.ts";
import { diedHolding, endLeaseOf } from "../../support/chaos.ts";
import {
  changeSource,
  documentDifferences,
  loopSearches,
  openSearchChaos,
  ROWS,
  SEARCH_KILLS,
  type SearchChaos,
  type SearchLoop,
  type SearchMode,
} from "../../support/search-chaos.ts";

/** As many processes at once as start well on two cores. */
const AT_ONCE = 3;

let chaos: SearchChaos;
let loop: SearchLoop;
type Indexed = Pipeline & { index: string };
const held = new Map<string, Indexed>();

/**
 * One pipeline and one runner per mode and fault point: each runner takes a pipeline and is killed at its point. In the
 * end one runner without a fault takes over all of them. The full ones have an index before, which is searched all the
 * time.
 */
beforeAll(async () => {
  chaos = await openSearchChaos();
  const full = await Promise.all(SEARCH_KILLS.full.map(() => chaos.createIndex("full")));
  const incremental = await Promise.all(SEARCH_KILLS.incremental.map(() => chaos.createIndex("incremental")));
  await Promise.all(full.map(({ id }) => chaos.store.requests.run(id, "api")));
  const first = chaos.runner(undefined, { RUNNER_CONCURRENCY: "6" });
  await chaos.atRest();
  await first.stop();
  await changeSource(chaos);
  for (const { index } of full) await chaos.search.ask("POST", `/${index}/_refresh`);
  loop = loopSearches(
    chaos.search,
    full.map(({ index }) => index),
  );
  for (const [mode, pipelines] of [
    ["full", full],
    ["incremental", incremental],
  ] as const) {
    await Promise.all(pipelines.map(({ id }) => chaos.store.requests.run(id, "api")));
    await killAll(mode, new Map(pipelines.map((pipeline) => [pipeline.id as string, pipeline])));
  }
  await chaos.query("UPDATE etl.etl_pipelines SET enabled = true");
  chaos.runner(undefined, { RUNNER_CONCURRENCY: "6" });
  await chaos.atRest();
  await loop.stop();
}, 900_000);

afterAll(async () => {
  await loop?.stop();
  await chaos?.close();
});

async function killAll(mode: SearchMode, pipelines: Map<string, Indexed>): Promise<void> {
  const waiting: string[] = [...SEARCH_KILLS[mode]];
  const killNext = async (): Promise<void> => {
    for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
      const runner = chaos.runner(`${point}:kill`);
      await diedHolding(runner, point);
      // Kept from everybody until all are killed.
      const [found] = await chaos.query(
        `UPDATE etl.etl_pipelines p SET enabled = false FROM etl.etl_runs r JOIN etl.etl_runners n ON n.id = r.runner_id
          WHERE r.pipeline_id = p.id AND n.pid = $1 RETURNING p.id`,
        [runner.pid],
      );
      await endLeaseOf(chaos, runner);
      held.set(`${mode} ${point}`, pipelines.get(found?.["id"] as string) as Indexed);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, killNext));
}

describe.each(["full", "incremental"] as const)("SIGKILL in a load of mode %s", (mode) => {
  it.each([...SEARCH_KILLS[mode]])(
    "R4.4 R4.7 at %s the index equals the query, and one index is left",
    async (point) => {
      const { id, index } = held.get(`${mode} ${point}`) as Indexed;
      expect(await chaos.store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
      expect(await chaos.store.state.get(id)).toMatchObject({ scanPosition: null });
      const [last, lost] = await askedRuns(chaos.store, id);
      expect(lost).toMatchObject({ status: "FAILED", error_code: "RUNNER_LOST" });
      expect(last).toMatchObject({ status: "SUCCESS", trigger: "recovery", error: null });
      expect(await documentDifferences(chaos, index)).toEqual([]);
      const aliases = Object.values(await chaos.search.family(index)).map((names) =>
        names.filter((name) => !name.includes("__write_")),
      );
      expect(aliases.sort()).toEqual(mode === "full" ? [[index], [`${index}__previous`]] : [[index]]);
    },
  );
});

it("R5.1 no search failed while the indexes were rebuilt, and none saw a half-loaded one", () => {
  expect(loop.failures).toEqual([]);
  expect(loop.searches()).toBeGreaterThan(200);
  // The new rows are called otherwise, so both indexes give the same number for this search.
  for (const [index, totals] of loop.totals) expect([index, ...totals]).toEqual([index, ROWS]);
});
