import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { LineLevel } from "../../src/domain/log-level.ts";
import { newPipelineSchema } from "../../src/domain/pipeline.ts";
import type { NewRunLogLine } from "../../src/domain/run-log.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Claim } from "../../src/meta-store/ports/run-queue.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

/** What a meta-store promises about the logs of runs. */

let database: TestDatabase;
let store: MetaStore;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  store = database.openStore();
});
afterAll(() => database.drop());

async function claimed(): Promise<Claim> {
  const name = `p_${randomUUID().slice(0, 8)}`;
  const config = { name, source_query: "SELECT 1 AS id", target_table: `analytics.${name}`, target_key: ["id"] };
  const { id } = await store.pipelines.create(newPipelineSchema.parse(config), "test");
  await store.requests.run(id, "api");
  return (await store.queue.claimNext(randomUUID(), 60_000)) as Claim;
}

const line = (runId: string, message: string, level: LineLevel = "info", fields: object = {}): NewRunLogLine => ({
  runId,
  at: new Date("2026-01-31T12:00:00.123Z"),
  level,
  message,
  fields: JSON.stringify(fields),
});

describe("the log of a run", () => {
  it("comes back as it was given, in order, also where lines of several runs are written at once", async () => {
    const [one, other] = [await claimed(), await claimed()];
    const messages = Array.from({ length: 500 }, (_, n) => `line ${n}`);
    await store.runLogs.append(messages.flatMap((text) => [line(one.runId, text), line(other.runId, `other ${text}`)]));
    await store.runLogs.append([line(one.runId, "last", "error", { rows: 3, deep: { list: [1, null] } })]);
    const { items, next, run_status, over } = await store.runLogs.read(one.pipeline.id, one.runId, { limit: 600 });
    expect(items.map(({ message }) => message)).toEqual([...messages, "last"]);
    expect(items.at(-1)).toMatchObject({
      at: new Date("2026-01-31T12:00:00.123Z"),
      level: "error",
      fields: { rows: 3, deep: { list: [1, null] } },
    });
    expect({ next, run_status, over }).toEqual({ next: null, run_status: "RUNNING", over: false });
  });

  it("is read in pages, by level, and goes on at any line", async () => {
    const { runId, pipeline } = await claimed();
    const levels: LineLevel[] = ["debug", "info", "warn", "error", "info"];
    await store.runLogs.append(levels.map((level) => line(runId, level, level)));
    const read = async (page: object): Promise<string[]> =>
      (await store.runLogs.read(pipeline.id, runId, { limit: 10, ...page })).items.map(({ message }) => message);
    expect(await read({ level: "warn" })).toEqual(["warn", "error"]);
    expect(await read({ level: "debug" })).toEqual(levels);
    const first = await store.runLogs.read(pipeline.id, runId, { limit: 2 });
    expect(first.next).toBe(String(first.items[1]?.id));
    expect(await read({ after: first.next })).toEqual(levels.slice(2));
    await expect(read({ after: "1; DROP TABLE etl.etl_runs" })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  });

  it("takes any text", async () => {
    const { runId, pipeline } = await claimed();
    const odd = { nul: "a\u0000b", half: "\ud800", quote: `"'\\`, text: "ё 映画 🎬" };
    await store.runLogs.append([line(runId, "odd", "info", odd)]);
    const { items } = await store.runLogs.read(pipeline.id, runId, { limit: 1 });
    expect(items[0]?.fields).toEqual(odd);
  });

  it("belongs to its run: lines of a run that is gone are left out, and those beside them are kept", async () => {
    const { runId, pipeline } = await claimed();
    await store.runLogs.append([line(randomUUID(), "nobody's"), line(runId, "mine")]);
    expect((await store.runLogs.read(pipeline.id, runId, { limit: 9 })).items).toMatchObject([{ message: "mine" }]);
    const other = await claimed();
    for (const strange of [runId, randomUUID(), "no id"]) {
      const reading = store.runLogs.read(other.pipeline.id, strange, { limit: 9 });
      await expect(reading).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    }
  });

  it("is over a while after its run has ended", async () => {
    const claim = await claimed();
    await store.queue.finishRun(claim, { kind: "succeeded" });
    const read = () => store.runLogs.read(claim.pipeline.id, claim.runId, { limit: 1 });
    expect(await read()).toMatchObject({ run_status: "SUCCESS" });
    await until("it is over", async () => (await read()).over);
  });
});
