import { afterEach, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { askedRuns } from "../support/asked-runs.ts";
import { type Chaos, endLeaseOf, openChaos } from "../support/chaos.ts";
import { faultPointsOf } from "../support/chaos-kills.ts";
import { createPipeline, createSource, differences, KINDS, type Kind, loadTables } from "../support/chaos-kinds.ts";
import { type Random, seededRandom } from "../support/chaos-random.ts";
import { until } from "../support/until.ts";
import type { VitrinaProcess } from "../support/vitrina-process.ts";

const PIPELINES = 20;
const RUNNERS = 4;
const DEATHS = 16;
/** A load may be begun by one path and ended by the other. */
const PATHS: readonly Record<string, string>[] = [{}, { LOADER_DATABASE_URL: "" }];

let chaos: Chaos;
afterEach(() => chaos?.close());

it("R4.2 R4.7 four runners that die at random leave every pipeline whole", async () => {
  const random = seededRandom();
  chaos = await openChaos("push-down");
  await createSource(chaos);
  const pipelines = await Promise.all(
    Array.from({ length: PIPELINES }, (_, n) =>
      createPipeline(chaos, KINDS[n % KINDS.length] as Kind, "push-down", `mart${n}`),
    ),
  );
  await dieAtRandom(random);

  for (const path of PATHS) chaos.runner(undefined, { RUNNER_CONCURRENCY: "4", ...path });
  await chaos.atRest();
  // A load that was interrupted ends with what it had already read; one more sees what changed since.
  await requestRuns();
  await chaos.atRest();
  for (const pipeline of pipelines) await requireWhole(pipeline);
  expect(await loadTables(chaos)).toEqual([]);
});

/** Keeps the pipelines busy, and the runners at their number, until enough of them died. */
async function dieAtRandom(random: Random): Promise<void> {
  let deaths = 0;
  const living = new Set<VitrinaProcess>();
  await until(`${DEATHS} runners died`, async () => {
    if (deaths >= DEATHS) return true;
    while (living.size < RUNNERS) {
      const runner = chaos.runner(randomFault(random), { RUNNER_CONCURRENCY: "3", ...random.pick(PATHS) });
      living.add(runner);
      void runner.exited.then((end) => {
        living.delete(runner);
        expect(end).toBe("SIGKILL");
        deaths += 1;
        return endLeaseOf(chaos, runner);
      });
    }
    await chaos.query("UPDATE content.film SET title = title || '!', modified = clock_timestamp() WHERE id % 40 = $1", [
      2 * random.below(20),
    ]);
    await requestRuns();
    return false;
  });
  for (const runner of living) runner.signal("SIGKILL");
  const last = [...living];
  await Promise.all(last.map(({ exited }) => exited));
  for (const runner of last) await endLeaseOf(chaos, runner);
}

/** One that a run of any kind can reach; seldom so early that no batch is ever committed. */
function randomFault(random: Random): string {
  const points = faultPointsOf(random.pick(KINDS), "push-down").filter((point) => !/^(claimed|prepared)/.test(point));
  const name = random.pick(points).split(":")[0];
  const isOfBatch = /^(batch|checkpoint|transaction)/.test(name as string);
  return `${name}:${1 + random.below(isOfBatch ? 12 : 3)}:kill`;
}

/** A pipeline that lost three runners before its first batch waits for a person: here is one. */
async function requestRuns(): Promise<void> {
  const idle = await chaos.query("SELECT id FROM etl.etl_pipelines WHERE status IN ('IDLE', 'FAILED')");
  await Promise.all(idle.map(({ id }) => chaos.store.requests.run(id as never, "api")));
}

async function requireWhole({ id, target_table }: Pipeline): Promise<void> {
  expect(await chaos.store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
  const runs = await askedRuns(chaos.store, id);
  expect(runs[0]).toMatchObject({ status: "SUCCESS" });
  const causes = new Set(runs.map(({ error_code }) => error_code).filter((code) => code !== null));
  expect([...causes].filter((code) => code !== "RUNNER_LOST")).toEqual([]);
  expect(await differences(chaos, target_table)).toBe(0);
}
