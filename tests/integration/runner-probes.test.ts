import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Registry } from "prom-client";
import { afterEach, describe, expect, inject, it } from "vitest";
import { startRunner } from "../../src/main/runner.ts";
import { livenessProblemOf, startRunnerAlone } from "../../src/main/runner-alone.ts";
import { startProbeServer } from "../../src/observability/probe-server.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { recordingLog } from "../support/recording-log.ts";
import { parseScrape } from "../support/scrape.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

/** What a runner in a process of its own tells whoever looks after it. */

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function openDatabase(settings: Record<string, string>): Promise<TestDatabase> {
  return createTestDatabase(inject("postgresUrl"), { settings });
}

async function startAlone(database: TestDatabase): Promise<string> {
  const log = recordingLog();
  const runner = await startRunnerAlone(database.settings, database.urls, log);
  closing.push(() => runner.stop());
  const served = log.entries.find(({ message }) => message === "metrics are served")?.fields;
  return (served as { url: string }).url;
}

async function ask(url: string, init: RequestInit = {}) {
  const answer = await fetch(url, init);
  return { status: answer.status, text: await answer.text(), type: answer.headers.get("content-type") };
}

describe("a runner with METRICS_PORT", () => {
  it("R9 shows its metrics and its health, and takes no orders", async () => {
    const database = await openDatabase({ METRICS_PORT: "0", RUNNER_CONCURRENCY: "7" });
    closing.push(() => database.drop());
    const url = await startAlone(database);
    const metrics = await ask(`${url}/metrics`);
    expect(metrics).toMatchObject({ status: 200, type: expect.stringMatching(/^text\/plain; version=0\.0\.4/) });
    expect(parseScrape(metrics.text).value("vitrina_runner_slots", { lane: "write" })).toBe(7);
    expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200, text: "ok\n" });
    expect(await ask(`${url}/readyz?verbose`)).toMatchObject({ status: 200, text: "ok\n" });
    expect(await ask(`${url}/`)).toMatchObject({ status: 404 });
    expect(await ask(`${url}/metrics`, { method: "POST" })).toMatchObject({ status: 405 });
    expect(await ask(`${url}/healthz`, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
  });

  it("R9 lives but is not ready while the meta-store is away, and says so in a sentence without details", async () => {
    const database = await openDatabase({ METRICS_PORT: "0", RUNNER_POLL_SECONDS: "1" });
    const url = await startAlone(database);
    await database.drop();
    const ready = await ask(`${url}/readyz`);
    expect(ready.status).toBe(503);
    expect(ready.text).toMatch(/^The meta-store cannot be reached .*\.\n$/);
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect((await ask(`${url}/metrics`)).status).toBe(200);
  });

  it("closes the port when it stops", async () => {
    const database = await openDatabase({ METRICS_PORT: "0" });
    closing.push(() => database.drop());
    const url = await startAlone(database);
    await (closing.pop() as () => Promise<void>)();
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it("does not start on a port that is taken, and leaves no runner behind", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    closing.push(async () => void other.close());
    const { port } = other.address() as AddressInfo;
    const database = await openDatabase({ METRICS_PORT: String(port) });
    closing.push(() => database.drop());
    await expect(startRunnerAlone(database.settings, database.urls, recordingLog())).rejects.toMatchObject({
      code: "PORT_TAKEN",
    });
    expect(await database.query("SELECT stopped_at IS NULL AS alive FROM etl.etl_runners")).toEqual([{ alive: false }]);
  });
});

describe("a runner without METRICS_PORT", () => {
  it("opens no port", async () => {
    const database = await openDatabase({});
    closing.push(() => database.drop());
    const log = recordingLog();
    const runner = await startRunnerAlone(database.settings, database.urls, log);
    closing.push(() => runner.stop());
    expect(log.has("runner started")).toBe(true);
    expect(log.has("metrics are served")).toBe(false);
  });
});

describe("R9 a runner that hangs", () => {
  it("is noticed, because its loop no longer comes round", async () => {
    const database = await openDatabase({ RUNNER_POLL_SECONDS: "1" });
    closing.push(() => database.drop());
    const proxy = await startTcpProxy(database.urls.meta);
    const log = recordingLog();
    const runner = await startRunner(
      database.settings,
      { ...database.urls, meta: proxy.through(database.urls.meta) },
      log,
    );
    // The proxy first: only then can the loop end.
    closing.push(
      () => runner.stop(),
      () => proxy.close(),
    );
    const report = { direction: "to server", bytes: "SET last_seen_at", nth: 1, after: [] } as const;
    const rule = proxy.on(report, "silence");
    await until("the meta-store falls silent", () => rule.acted);
    await until("the loop is overdue", () => runner.silentMs() > 3000);
    expect(log.has("the meta-store did not answer; trying again")).toBe(false);
  });

  it("is ill after two minutes, or three turns where they take longer", () => {
    expect(livenessProblemOf(119_000, 5000)).toBeUndefined();
    expect(livenessProblemOf(121_000, 5000)).toMatch(/^The runner .*\.$/);
    expect(livenessProblemOf(121_000, 60_000)).toBeUndefined();
    expect(livenessProblemOf(181_000, 60_000)).toMatch(/^The runner .*\.$/);
  });

  it("answers 503 with the reason", async () => {
    const server = await startProbeServer({
      host: "127.0.0.1",
      port: 0,
      registry: new Registry(),
      livenessProblem: () => "It hangs.",
      checkReady: async () => undefined,
      log: recordingLog(),
    });
    closing.push(() => server.stop());
    expect(await ask(`${server.url}/healthz`)).toMatchObject({ status: 503, text: "It hangs.\n" });
    expect(await ask(`${server.url}/readyz`)).toMatchObject({ status: 200 });
  });
});

describe("a runner that starts while the database refuses", () => {
  it("waits for it, says so, and then works", async () => {
    const database = await openDatabase({});
    closing.push(() => database.drop());
    const proxy = await startTcpProxy(database.url);
    closing.push(() => proxy.close());
    await proxy.refuse();
    const log = recordingLog();
    const urls = { ...database.urls, meta: proxy.through(database.urls.meta) };
    const starting = startRunnerAlone(database.settings, urls, log);
    await until("it waits", () => log.has("the meta-store does not answer yet; waiting for it"));
    await proxy.accept();
    const runner = await starting;
    closing.push(() => runner.stop());
    expect(log.has("runner started")).toBe(true);
  });

  it("ends when it is told to meanwhile", async () => {
    const database = await openDatabase({});
    closing.push(() => database.drop());
    const proxy = await startTcpProxy(database.url);
    await proxy.refuse();
    const log = recordingLog();
    const stop = new AbortController();
    const urls = { ...database.urls, meta: proxy.through(database.urls.meta) };
    const starting = startRunnerAlone(database.settings, urls, log, stop.signal);
    await until("it waits", () => log.has("the meta-store does not answer yet; waiting for it"));
    stop.abort();
    await (await starting).stop();
    expect(log.has("runner started")).toBe(false);
  });

  it("fails at once where somebody must act: a wrong password, another database, no schema", async () => {
    const database = await openDatabase({});
    closing.push(() => database.drop());
    const withMeta = (change: (url: URL) => void): Promise<unknown> => {
      const url = new URL(database.urls.meta);
      change(url);
      return startRunnerAlone(database.settings, { ...database.urls, meta: url.href }, recordingLog());
    };
    await expect(
      withMeta((url) => {
        url.pathname = "/nowhere";
      }),
    ).rejects.toMatchObject({ code: "DATABASE_MISSING" });
    await expect(
      withMeta((url) => {
        url.username = "vitrina_nobody";
      }),
    ).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await database.query("DELETE FROM etl.schema_migrations");
    await expect(withMeta(() => undefined)).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
  });
});
