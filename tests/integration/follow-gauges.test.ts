import { expect, it } from "vitest";
import type { ApiParts } from "../../src/control-plane/api.ts";
import { createFollowGauges } from "../../src/control-plane/metrics/follow-gauges.ts";
import { createRegistry } from "../../src/observability/registry.ts";
import { recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** What the API tells of the sources that marts follow, although one of them is away. */

it("a source that does not answer is told, besides what waits in the others", async () => {
  const registry = createRegistry("test");
  let answered = 0;
  const parts = {
    registry,
    log: recordingLog(),
    store: {
      follow: {
        watched: async () =>
          ["main", "shop"].map((source_connection) => ({
            ...{ id: source_connection, name: `of_${source_connection}`, source_type: "postgres", source_connection },
            ...{ position: {}, tables: [] },
          })),
      },
    },
    inspector: {
      source: async ({ source_connection }: { source_connection: string }) => {
        answered += 1;
        if (source_connection === "shop") throw new Error("no route to host");
        const byPipeline = new Map([["main", { changes: 3, oldestSeconds: 7 }]]);
        return { changesWaiting: async () => ({ byPipeline }), close: async () => undefined };
      },
    },
  } as unknown as ApiParts;
  const gauges = createFollowGauges(parts);
  gauges.refresh();
  await until("both were asked", () => answered === 2);
  await gauges.close();
  gauges.refresh();
  const text = await registry.metrics();
  expect(text).toContain('vitrina_follow_source_answers{connection="main"} 1');
  expect(text).toContain('vitrina_follow_source_answers{connection="shop"} 0');
  expect(text).toContain('vitrina_follow_changes_waiting{pipeline="of_main"} 3');
  expect(text).not.toContain("of_shop");
});
