import { once } from "node:events";
import { connect } from "node:net";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EventStream } from "../../src/control-plane/changes/event-feed.ts";
import { claim, createPipeline, expectProblem, startTestApi } from "../support/api-client.ts";
import { type ApiWithRunner, startApiWithRunner } from "../support/api-with-runner.ts";
import { type EventReader, readEvents } from "../support/event-reader.ts";
import { holdLock } from "../support/hold-lock.ts";
import { until } from "../support/until.ts";

let api: ApiWithRunner;
const readers: EventReader[] = [];
beforeAll(async () => {
  api = await startApiWithRunner();
});
beforeEach(() => api.database.forgetPipelines());
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});
afterAll(() => api.stop());

async function open(query = "", lastEventId?: string): Promise<EventReader> {
  const reader = await readEvents(`${api.url}/api/v1/events${query}`, lastEventId);
  readers.push(reader);
  await reader.find("the stream begins", ({ name }) => name === "ready" || name === "reset");
  return reader;
}

describe("GET /events", () => {
  it("comes as an event stream that no proxy keeps back", async () => {
    const { headers, events } = await open();
    expect(headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-accel-buffering")).toBe("no");
    expect(events).toMatchObject([{ name: "ready", id: expect.stringMatching(/^\d+$/) }]);
  });

  it("tells what happens to a pipeline and its run, the latest state of each", async () => {
    const reader = await open();
    const id = await createPipeline(api, "film");
    await reader.find("the new pipeline", ({ name, data }) => name === "pipeline" && data.status === "IDLE");
    const claimed = await claim(api, id);
    const run = await reader.find("the run", ({ name }) => name === "run");
    expect(run.data).toMatchObject({ id: claimed.runId, pipeline_id: id, pipeline_name: "film", status: "RUNNING" });
    expect(run.data).toMatchObject({ rows_read: 0, rows_per_second: 0, batches: 0, estimated_rows: null });
    await api.store.queue.finishRun(claimed, { kind: "succeeded" });
    await reader.find("its end", ({ name, data }) => name === "run" && data.status === "SUCCESS");
    const last = await reader.find(
      "the pipeline at rest",
      ({ name, data }) => name === "pipeline" && data.status === "IDLE" && data.run_request === 1,
    );
    expect(last.data).toEqual({ id, name: "film", status: "IDLE", enabled: true, run_request: 1, config_version: 1 });
    await api.patch(`/pipelines/${id}`, { enabled: false });
    await reader.find("the new version", ({ data }) => data.enabled === false && data.config_version === 2);
  });

  it("shows the progress of a real run, with what it expects to read", async () => {
    await api.database.query(`CREATE TABLE content.film AS SELECT n AS id FROM generate_series(1, 20000) n;
      ALTER TABLE content.film ADD PRIMARY KEY (id); ANALYZE content.film;
      CREATE TABLE analytics.film (id int PRIMARY KEY)`);
    const id = await api.create("film", { source_query: "SELECT id FROM content.film", batch_size: 100 });
    await api.startRunner();
    const reader = await open("?pipeline=film");
    await api.post(`/pipelines/${id}/run`);
    await until(
      "a batch is committed",
      async () => (await api.get(`/pipelines/${id}/state`)).body.batches_committed > 1,
    );
    const letGo = await holdLock(api.database.url, "LOCK TABLE analytics.film IN ACCESS EXCLUSIVE MODE");
    const [now] = (await api.get(`/pipelines/${id}/runs`)).body.items;
    const progress = await reader.find(
      "its progress",
      ({ name, data }) => name === "run" && data.batches === now.batches,
    );
    expect(progress.data).toMatchObject({ status: "RUNNING", rows_read: now.rows_read, estimated_rows: 20_000 });
    await letGo();
    await reader.find("its end", ({ name, data }) => name === "run" && data.status === "SUCCESS");
    const told = reader.events.filter(({ name }) => name === "run").map(({ data }) => data.batches);
    expect(told).toEqual([...told].sort((a, b) => a - b));
    await api.stopRunner();
  });

  it("tells of one pipeline only, by id or name, when asked so", async () => {
    const [id] = [await createPipeline(api, "film"), await createPipeline(api, "other")];
    const [byName, byId, all] = [await open("?pipeline=film"), await open(`?pipeline=${id}`), await open()];
    await api.post("/pipelines/other/run");
    await all.find("the other one", ({ data }) => data.name === "other");
    await api.post("/pipelines/film/run");
    for (const reader of [byName, byId]) {
      await reader.find("the pipeline", ({ data }) => data.status === "RUN_REQUESTED");
      expect(reader.events.filter(({ data }) => data.name === "other")).toEqual([]);
    }
    expectProblem(await api.get("/events?pipeline=nobody"), "PIPELINE_NOT_FOUND");
    expectProblem(await api.get("/events?pipelines=film"), "INVALID_REQUEST");
  });

  it("a new reader first gets the runs under way", async () => {
    const claimed = await claim(api, await createPipeline(api, "film"));
    const reader = await open();
    expect(await reader.find("the run", ({ name }) => name === "run")).toMatchObject({ data: { id: claimed.runId } });
  });
});

describe("Last-Event-ID", () => {
  it("brings everything that changed meanwhile, in its latest state", async () => {
    const before = await open();
    const id = await createPipeline(api, "film");
    const { id: point } = await before.find("the pipeline", ({ name }) => name === "pipeline");
    before.close();
    const claimed = await claim(api, id);
    await api.store.queue.finishRun(claimed, { kind: "succeeded" });
    await createPipeline(api, "other");
    const after = await open("", point);
    await after.find("the other one", ({ data }) => data.name === "other");
    await after.find("the run", ({ name, data }) => name === "run" && data.status === "SUCCESS");
    // None of the states in between; the last one may come twice.
    const told = after.events.filter(({ data }) => data.name === "film").map(({ data }) => data);
    expect(new Set(told.map(({ status, run_request }) => `${status} ${run_request}`))).toEqual(new Set(["IDLE 1"]));
  });

  it("loses nothing of a transaction that began earlier and commits later", async () => {
    const id = await createPipeline(api, "slow");
    const commit = await openTransaction(
      "UPDATE etl.etl_pipelines SET enabled = false, config_version = 2 WHERE id = $1",
      id,
    );
    const reader = await open();
    await createPipeline(api, "fast");
    const { id: point } = await reader.find("the fast one", ({ data }) => data.name === "fast");
    reader.close();
    await commit();
    const after = await open("", point);
    await after.find("the slow one", ({ data }) => data.name === "slow" && data.enabled === false);
  });

  it("that is no point, or one of another database, says that the lists must be read again", async () => {
    for (const point of ["nonsense", "-1", "999999999999999999", "1e5"]) {
      const [first] = (await open("", point)).events;
      expect(first).toMatchObject({ name: "reset", id: expect.stringMatching(/^\d+$/) });
    }
  });

  it("that lies too far back says so, too", async () => {
    const [first] = (await open()).events;
    await api.database.query(
      "INSERT INTO etl.etl_pipelines (name, target_table) SELECT 'p_' || n, 'analytics.p' FROM generate_series(1, 1500) n",
    );
    const after = await open("", first?.id);
    expect(after.events[0]).toMatchObject({ name: "reset" });
  });
});

describe("streams", () => {
  const listeners = () =>
    api.database.query(
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN vitrina_changes%'",
    );

  it("share one connection, however many there are, and are refused beyond a hundred", async () => {
    const opened = await Promise.all(Array.from({ length: 100 }, () => open()));
    expect(await listeners()).toHaveLength(1);
    const refused = await api.get("/events");
    expectProblem(refused, "TOO_MANY_STREAMS");
    expect(refused.headers.get("retry-after")).not.toBeNull();
    await createPipeline(api, "film");
    for (const reader of opened) await reader.find("the pipeline", ({ data }) => data.name === "film");
    for (const reader of opened) reader.close();
    await until("a stream is free again", async () => {
      const answer = await fetch(`${api.url}/events`).catch(() => undefined);
      await answer?.body?.cancel();
      return answer?.status === 200;
    });
  });

  it("that nobody reads are dropped before they fill the memory", () => {
    const stream = new EventStream(null);
    const event = { name: "run", data: { error: "x".repeat(4000) } } as const;
    let sent = 0;
    while (!stream.output.destroyed && sent < 1000) {
      stream.send("1", [event]);
      sent += 1;
    }
    expect(stream.output.destroyed).toBe(true);
    expect(sent).toBeGreaterThan(200);
    stream.send("2", [event]);
    stream.giveSignOfLife();
  });

  it("end when the server stops, which does not hang", async () => {
    const stopping = await startTestApi();
    const reader = await readEvents(`${stopping.url}/events`);
    await reader.find("the stream begins", ({ name }) => name === "ready");
    await createPipeline(stopping, "film");
    await stopping.stop();
    await until("the stream has ended", () => reader.ended());
  });

  it("and connections that never asked anything do not hold the server up when it stops", async () => {
    const stopping = await startTestApi();
    const { hostname, port } = new URL(stopping.url);
    const silent = connect({ host: hostname, port: Number(port) });
    const closed = once(silent, "close");
    await once(silent, "connect");
    await stopping.get("/health");
    await stopping.stop();
    await closed;
  });

  it("cost nothing when nobody listens: the meta-store is not asked", async () => {
    for (const reader of readers.splice(0)) reader.close();
    await claim(api, await createPipeline(api, "film"));
    const reader = await open();
    await reader.find("the run", ({ name }) => name === "run");
    const asked = async () => {
      const [row] = await api.database.query(
        "SELECT max(query_start) AS last FROM pg_stat_activity WHERE application_name = 'vitrina api' AND datname = current_database()",
      );
      return row?.["last"];
    };
    const first = await asked();
    await until("it looks for progress while somebody listens", async () => `${await asked()}` !== `${first}`);
    reader.close();
    // Two quiet looks in a row, further apart than the feed looks by itself.
    await until("it stops", async () => {
      const before = await asked();
      await new Promise((resolve) => setTimeout(resolve, 2500));
      return `${await asked()}` === `${before}`;
    });
  });
});

async function openTransaction(sql: string, id: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: api.database.url });
  await client.connect();
  await client.query("BEGIN");
  await client.query(sql, [id]);
  return async () => {
    await client.query("COMMIT");
    await client.end();
  };
}
