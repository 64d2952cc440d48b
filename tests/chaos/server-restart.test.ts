import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import { type Chaos, faulted, openChaos, printed } from "../support/chaos.ts";
import { createPipeline, createSource, differences, KINDS, loadTables } from "../support/chaos-kinds.ts";
import { createTemplate, createTestDatabase } from "../support/database.ts";
import { eventually, isAlive, serverPid } from "../support/embedded-postgres-harness.ts";

/** A server of this test alone; one that loses what it promised to keep would be no fair judge, so commits are synchronous. */
const SETTINGS = { fsync: "off", full_page_writes: "off" };

let dataDir: string;
let server: EmbeddedPostgres;
let chaos: Chaos;
afterEach(async () => {
  // The connections from before the restart are dead, also the one that would drop the database.
  await chaos?.close().catch(() => undefined);
  await server?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

/** Where the runner stands when the server goes; without the loader's login it goes by stream. */
const RESTARTS: [string, Record<string, string>][] = [
  ["batch_applied:9", {}],
  ["batch_read:9", { LOADER_DATABASE_URL: "" }],
];

it("R4.6 a runner outlives PostgreSQL stopped `immediate` in the middle of its loads, and ends them all", async () => {
  dataDir = await mkdtemp(join(tmpdir(), "vitrina-chaos-"));
  server = await startEmbeddedPostgres({ dataDir, serverSettings: SETTINGS });
  const { port } = server;
  await createTemplate(server.url);
  chaos = await openChaos("push-down", await createTestDatabase(server.url));
  await createSource(chaos);
  const pipelines = await Promise.all(KINDS.map((kind, n) => createPipeline(chaos, kind, "push-down", `mart${n}`)));

  for (const [point, environment] of RESTARTS) {
    await chaos.query("UPDATE content.film SET title = title || '!', modified = clock_timestamp() WHERE id % 10 = 0");
    const runner = chaos.runner(`${point}:park`, { RUNNER_CONCURRENCY: "4", ...environment });
    await Promise.all(pipelines.map(({ id }) => chaos.store.requests.run(id, "api")));
    await faulted(runner, point, "park");
    const pid = await serverPid(dataDir);
    process.kill(pid, "SIGQUIT");
    await eventually(async () => !(await isAlive(pid)));
    runner.signal("SIGUSR2");
    await printed(runner, /run left to recovery/);
    server = await startEmbeddedPostgres({ dataDir, serverSettings: SETTINGS, port });
    // Recovery begins when a lease is over, which is not waited for.
    await chaos.query(`UPDATE etl.etl_runs SET lease_expires_at = clock_timestamp()
      WHERE status = 'RUNNING' AND started_at < pg_postmaster_start_time()`);
    await chaos.atRest();

    expect(runner.child.exitCode).toBeNull();
    await runner.stop();
    for (const pipeline of pipelines) await requireWhole(pipeline);
    const ends = (await chaos.store.runs.list(null, { limit: 200 })).items.map(({ error_code }) => error_code);
    expect(ends).toContain("DATABASE_RESTARTED");
    expect(await loadTables(chaos)).toEqual([]);
  }
});

async function requireWhole({ id, target_table }: Pipeline): Promise<void> {
  expect(await chaos.store.pipelines.get(id)).toMatchObject({ status: "IDLE" });
  const runs = (await chaos.store.runs.list(id, { limit: 50 })).items;
  expect(runs[0]).toMatchObject({ status: "SUCCESS" });
  expect(runs.filter(({ status, error_code }) => status === "FAILED" && error_code !== "DATABASE_RESTARTED")).toEqual(
    [],
  );
  expect(await differences(chaos, target_table)).toBe(0);
}
