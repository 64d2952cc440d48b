import { expect, inject, it } from "vitest";
import { startSearchServer } from "../../../scripts/search-servers.mjs";
import { faulted } from "../../support/chaos.ts";
import { changeSource, documentDifferences, openSearchChaos } from "../../support/search-chaos.ts";

const name = inject("searchServer");

/** A server that was given may not be killed; this one is the test's own. */
if (name === null)
  console.warn("Not tested: a search server that is killed, because ELASTICSEARCH_URL is not ours to kill.");
it.skipIf(name === null)(
  "R4.6 a run outlives a search server that is killed and comes back",
  async ({ onTestFinished }) => {
    const server = await startSearchServer(name ?? "opensearch3");
    onTestFinished(() => server.stop());
    const chaos = await openSearchChaos(server.url);
    onTestFinished(() => chaos.close());
    const pipelines = [await chaos.createIndex("full"), await chaos.createIndex("incremental")];
    for (const point of ["bulk_ready:5", "bulk_answered:7"]) {
      await changeSource(chaos).catch(() => undefined);
      await Promise.all(pipelines.map(({ id }) => chaos.store.requests.run(id, "api")));
      const runner = chaos.runner(`${point}:park`, { RUNNER_CONCURRENCY: "2", ELASTICSEARCH_PATIENCE_SECONDS: "300" });
      await faulted(runner, point, "park");
      await server.kill();
      runner.signal("SIGUSR2");
      expect((await chaos.query("SELECT FROM etl.etl_pipelines WHERE status = 'RUNNING'")).length).toBeGreaterThan(0);
      await server.restart();
      await chaos.atRest();
      expect(runner.child.exitCode).toBeNull();
      await runner.stop();
      for (const { id, index } of pipelines) {
        expect(await chaos.store.runs.list(id, { limit: 1 })).toMatchObject({
          items: [{ status: "SUCCESS", attempt: 1 }],
        });
        expect(await documentDifferences(chaos, index)).toEqual([]);
      }
    }
  },
  // A server takes its time to start, three times.
  600_000,
);
