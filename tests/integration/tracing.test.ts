import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startRunner } from "../../src/main/runner.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { recordingLog } from "../support/recording-log.ts";
import { type SpanCollector, startSpanCollector } from "../support/span-collector.ts";
import { roleEnvironment, spawnVitrina } from "../support/vitrina-process.ts";

/** Spans of real runs, as a real collector on this machine receives them. */

const ROW_VALUE = "canary4f1e";

let collector: SpanCollector;
let bench: Bench;
beforeEach(async () => {
  collector = await startSpanCollector();
  bench = await openBench({
    RETRY_ATTEMPTS: "2",
    RETRY_BACKOFF_SECONDS: "0",
    SOURCE_DEAD_URL: "postgres://nobody:nothing@127.0.0.1:1/nothing",
  });
  await bench.query(
    `CREATE TABLE content.film AS SELECT n AS id, '${ROW_VALUE}' || n AS title FROM generate_series(1, 25) n;
     ALTER TABLE content.film ADD PRIMARY KEY (id)`,
  );
});
afterEach(async () => {
  await bench?.close();
  await collector?.close();
});

/** A runner that sends its spans to `tracing.url`; the returned function stops it, which sends those that wait. */
async function tracingRunner(url = `${collector.url}/v1/traces`) {
  const log = recordingLog();
  const tracing = { url, headers: { "x-team": "cinema" }, serviceName: "marts" };
  const runner = await startRunner({ ...bench.database.settings, tracing }, bench.database.urls, log);
  return { log, stop: () => runner.stop() };
}

const FILMS = { source_query: "SELECT id, title FROM content.film", target_key: ["id"], batch_size: 10 };

describe("tracing", () => {
  it("R9 sends a span of each run, and below it one of each batch, with ids, rows and the result", async () => {
    const { log, stop } = await tracingRunner();
    const pipeline = await bench.create(FILMS);
    const run = await bench.run(pipeline);
    await stop();

    const [root, ...others] = collector.spans.filter(({ name }) => name === "run");
    expect(others).toEqual([]);
    expect(root).toMatchObject({
      parentSpanId: undefined,
      attributes: {
        "vitrina.pipeline.id": pipeline.id,
        "vitrina.pipeline.name": pipeline.name,
        "vitrina.run.id": run.id,
        "vitrina.run.attempt": 1,
        "vitrina.run.trigger": "api",
        "vitrina.run.result": "succeeded",
        "vitrina.run.batches": 3,
        "vitrina.run.rows_read": 25,
        "vitrina.run.rows_written": 25,
      },
      resource: { "service.name": "marts", "service.version": expect.any(String) },
    });
    expect(root?.status.code ?? 0).toBe(0);

    const batches = collector.spans.filter(({ name }) => name === "batch");
    expect(batches.map(({ attributes }) => attributes["vitrina.batch.number"])).toEqual([1, 2, 3]);
    expect(batches.map(({ attributes }) => attributes["vitrina.batch.rows_read"])).toEqual([10, 10, 5]);
    for (const batch of batches) {
      expect(batch).toMatchObject({ traceId: root?.traceId, parentSpanId: root?.spanId });
      expect(batch.attributes).toMatchObject({ "vitrina.run.id": run.id, "vitrina.pipeline.id": pipeline.id });
      expect(batch.startNs).toBeGreaterThanOrEqual((root?.startNs as bigint) - 1_000_000n);
      expect(batch.endNs).toBeGreaterThanOrEqual(batch.startNs);
      expect(batch.endNs).toBeLessThanOrEqual((root?.endNs as bigint) + 1_000_000n);
    }
    expect(collector.requests[0]).toMatchObject({ path: "/v1/traces", headers: { "x-team": "cinema" } });

    const ended = log.entries.find(({ message }) => message === "run ended");
    expect(ended?.fields).toMatchObject({ run_id: run.id, trace_id: root?.traceId });
    const { items } = await bench.store.runLogs.read(pipeline.id, run.id, { limit: 200 });
    expect(items.map(({ fields }) => fields["trace_id"])).toEqual(items.map(() => root?.traceId));
  });

  it("R9 marks a failed run and its batch, each attempt a trace of its own, without values and SQL", async () => {
    const { stop } = await tracingRunner();
    await bench.query(
      `CREATE TABLE analytics.short (id int PRIMARY KEY, title varchar(3));
       GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.short TO vitrina_writer`,
    );
    const refused = await bench.create({ ...FILMS, name: "short", target_table: "analytics.short", max_rejects: 0 });
    expect(await bench.run(refused)).toMatchObject({ status: "FAILED", error_code: "TOO_MANY_REJECTS" });
    const away = await bench.create({ ...FILMS, source_connection: "dead", retry_for_seconds: 0 });
    expect(await bench.run(away)).toMatchObject({ status: "FAILED", attempt: 2 });
    await stop();

    const ofPipeline = (id: string) =>
      collector.spans.filter(({ attributes }) => attributes["vitrina.pipeline.id"] === id);
    const spans = ofPipeline(refused.id);
    expect(spans.map(({ name }) => name).sort()).toEqual(["batch", "run"]);
    for (const span of spans) {
      expect(span.status).toMatchObject({ code: 2, message: "TOO_MANY_REJECTS" });
      expect(span.attributes["error.type"]).toBe("TOO_MANY_REJECTS");
    }
    const failed = ofPipeline(away.id);
    expect(failed.map(({ attributes }) => attributes["vitrina.run.attempt"])).toEqual([1, 2]);
    expect(failed[0]?.traceId).not.toBe(failed[1]?.traceId);
    for (const { name, status, attributes } of failed) {
      expect({ name, status }).toEqual({ name: "run", status: { code: 2, message: "DATABASE_UNAVAILABLE" } });
      expect(attributes["vitrina.run.result"]).toBe("failed");
    }
    const sent = collector.requests.map(({ body }) => body).join("\n");
    expect(sent).toContain("TOO_MANY_REJECTS");
    expect(sent).not.toContain(ROW_VALUE);
    expect(sent).not.toContain("SELECT");
  });

  it.each([
    ["is away", undefined],
    ["never answers", createServer()],
  ])("does not disturb a run when the collector %s, and the runner stops all the same", async (_, server) => {
    const url = server === undefined ? "http://127.0.0.1:1/v1/traces" : await silentUrl(server);
    const { log, stop } = await tracingRunner(url);
    expect(await bench.run(await bench.create(FILMS))).toMatchObject({ status: "SUCCESS", rows_written: 25 });
    await stop();
    server?.close();
    expect(log.has("runner stopped")).toBe(true);
    expect(log.entries.filter(({ message }) => message === "spans cannot be exported")).toHaveLength(1);
  });

  it.each([
    ["is not even loaded where no collector is named", {}, false],
    ["is loaded where one is", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1/" }, true],
  ])("the SDK %s", async (_, env, isLoaded) => {
    const runner = spawnVitrina(["runner"], {
      env: {
        ...roleEnvironment(bench.database.urls),
        ...(env as Record<string, string>),
        NODE_OPTIONS: `--import ${new URL("../support/record-imports.mjs", import.meta.url).href}`,
      },
    });
    await runner.untilPrinted("runner started");
    const run = await bench.run(await bench.create(FILMS));
    expect(run.status).toBe("SUCCESS");
    expect(await runner.stop()).toBe(0);
    // Proves that imports are seen at all.
    expect(runner.output()).toContain("IMPORTED @opentelemetry/api\n");
    expect(runner.output().includes("IMPORTED @opentelemetry/sdk-trace\n")).toBe(isLoaded);
    expect(runner.output().includes("IMPORTED @opentelemetry/exporter-trace-otlp-http\n")).toBe(isLoaded);
  });
});

/** Takes connections and says nothing. */
async function silentUrl(server: Server): Promise<string> {
  server.on("connection", (socket) => socket.unref());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
}
