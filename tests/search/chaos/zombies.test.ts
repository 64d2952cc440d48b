import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PipelineId } from "../../../src/domain/pipeline.ts";
import { endLeaseOf, faulted, printed, SHORT_LEASE } from "../../support/chaos.ts";
import { recordChangesOf } from "../../support/chaos-follow.ts";
import { changeSource, documentDifferences, openSearchChaos, type SearchChaos } from "../../support/search-chaos.ts";
import { startFaultProxy } from "../../support/search-fault-proxy.ts";
import { until } from "../../support/until.ts";
import type { VitrinaProcess } from "../../support/vitrina-process.ts";

/** A runner is frozen (SIGSTOP) until its lease is over and another one goes on, then woken (SIGCONT). */
let chaos: SearchChaos;
beforeEach(async () => {
  chaos = await openSearchChaos();
});
afterEach(() => chaos.close());

async function versions(index: string): Promise<unknown> {
  await chaos.search.ask("POST", `/${index}/_refresh`);
  const { body } = await chaos.search.ask("POST", `/${index}/_search`, { size: 5000, version: true, sort: ["id"] });
  return body.hits.hits.map(({ _id, _version }: { _id: string; _version: number }) => [_id, _version]);
}

describe("a runner that wakes up after its lease", () => {
  it.each([
    ["incremental", "switch_ready:1"],
    ["incremental", "bulk_ready:4"],
    ["full", "bulk_ready:4"],
    ["full", "load_applied:1"],
    ["full", "switch_ready:1"],
  ] as const)("R4.7 changes nothing any more: %s, frozen at %s", async (mode, point) => {
    const pipeline = await chaos.createIndex(mode);
    await chaos.store.requests.run(pipeline.id, "api");
    const zombie = chaos.runner(`${point}:stop`);
    await faulted(zombie, point, "stop");
    await changeSource(chaos);
    chaos.runner();
    await chaos.atRest();
    if (mode === "full") {
      // By then its index is the one before; under the name it would be a second one.
      await chaos.store.requests.run(pipeline.id, "api");
      await chaos.atRest();
    }
    const before = { versions: await versions(pipeline.index), family: await chaos.search.family(pipeline.index) };
    const runs = await chaos.query("SELECT r::text FROM etl.etl_runs r ORDER BY id");

    zombie.signal("SIGCONT");
    await zombie.untilPrinted("run dropped");
    expect({ versions: await versions(pipeline.index), family: await chaos.search.family(pipeline.index) }).toEqual(
      before,
    );
    expect(await chaos.query("SELECT r::text FROM etl.etl_runs r ORDER BY id")).toEqual(runs);
    if (mode === "incremental") expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
  });

  it("R4.7 cannot write into a load that its successor has taken over and not yet ended", async () => {
    const pipeline = await chaos.createIndex("full");
    await chaos.store.requests.run(pipeline.id, "api");
    const zombie = chaos.runner("bulk_ready:4:stop");
    await faulted(zombie, "bulk_ready:4", "stop");
    // These rows are gone when the successor comes by: whatever brings them back now is a ghost.
    await chaos.query("DELETE FROM content.film WHERE id % 4 = 0 AND id > 720");
    const owner = chaos.runner("bulk_answered:1:park");
    await faulted(owner, "bulk_answered:1", "park");
    zombie.signal("SIGCONT");
    await zombie.untilPrinted("run dropped");
    // Looked for before the load ends: the run that follows it builds another index.
    await chaos.search.ask("POST", `/${pipeline.index}__*/_refresh`);
    const { body } = await chaos.search.ask("POST", `/${pipeline.index}__*/_search`, { size: 5000 });
    const ids = body.hits.hits.map(({ _source }: { _source: { id: number } }) => _source.id);
    expect(ids.some((id: number) => id > 720)).toBe(true);
    expect(ids.filter((id: number) => id > 720 && id % 4 === 0)).toEqual([]);
    owner.signal("SIGUSR2");
    await chaos.atRest();
    expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
  });

  it("R4.7 loses by its version, where the cluster had its request before the alias was taken away", async () => {
    const proxy = await startFaultProxy(chaos.search.url);
    try {
      const pipeline = await chaos.createIndex("incremental");
      await chaos.store.requests.run(pipeline.id, "api");
      proxy.next("nothing", "nothing", "nothing", "late");
      const zombie = chaos.runner(undefined, { ELASTICSEARCH_URL: proxy.url, ...SHORT_LEASE });
      await until("its request is on its way", () => proxy.happened.includes("late"));
      zombie.signal("SIGSTOP");
      await changeSource(chaos);
      chaos.runner();
      await chaos.atRest();
      const { items } = JSON.parse(await proxy.release()) as { items: { index: { status: number } }[] };
      expect(items.length).toBeGreaterThan(0);
      expect(items.map(({ index }) => index.status)).toEqual(items.map(() => 409));
      expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
      zombie.signal("SIGCONT");
      await zombie.untilPrinted("run dropped");
      expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });

  it("R4.7 cannot bring back a document that was deleted meanwhile", async () => {
    await chaos.query("ALTER TABLE content.film ADD COLUMN gone boolean NOT NULL DEFAULT false");
    const pipeline = await chaos.createIndex("incremental", {
      source_query: "SELECT id, code, title, modified, gone FROM content.film",
      target_options: { delete_when: "gone" },
    });
    await chaos.store.requests.run(pipeline.id, "api");
    const zombie = chaos.runner("bulk_ready:4:stop");
    await faulted(zombie, "bulk_ready:4", "stop");
    await chaos.query("UPDATE content.film SET gone = true, modified = clock_timestamp() WHERE id % 3 = 0");
    chaos.runner();
    await chaos.atRest();
    zombie.signal("SIGCONT");
    await zombie.untilPrinted("run dropped");
    const left = [...(await chaos.search.documents(pipeline.index)).keys()].map(Number).sort((a, b) => a - b);
    const wanted = await chaos.query("SELECT id::int FROM content.film WHERE NOT gone ORDER BY id");
    expect(left).toEqual(wanted.map(({ id }) => id));
  });

  it("R4.7 makes no index of its old alias, where it has nothing but deletes left to send", async () => {
    await chaos.query("ALTER TABLE content.film ADD COLUMN gone boolean NOT NULL DEFAULT false");
    const pipeline = await chaos.createIndex("incremental", {
      source_query: "SELECT id, code, title, modified, gone FROM content.film",
      target_options: { delete_when: "gone" },
    });
    await chaos.store.requests.run(pipeline.id, "api");
    const first = chaos.runner();
    await chaos.atRest();
    await first.stop();
    await chaos.query("UPDATE content.film SET gone = true, modified = clock_timestamp() WHERE id % 3 = 0");
    await chaos.store.requests.run(pipeline.id, "api");
    const zombie = chaos.runner("bulk_ready:1:stop");
    await faulted(zombie, "bulk_ready:1", "stop");
    chaos.runner();
    await chaos.atRest();
    const before = { versions: await versions(pipeline.index), family: await chaos.search.family(pipeline.index) };
    zombie.signal("SIGCONT");
    await zombie.untilPrinted("run dropped");
    expect({ versions: await versions(pipeline.index), family: await chaos.search.family(pipeline.index) }).toEqual(
      before,
    );
  });
});

describe("a runner that wakes up in the middle of a round", () => {
  const SEEN_BY_BOTH = `
    DELETE FROM content.film WHERE id <= 100;
    UPDATE content.film SET title = 'seen by both' WHERE id BETWEEN 101 AND 200;
    UPDATE content.film SET id = id + 100000 WHERE id BETWEEN 201 AND 300`;
  /** What the first one deletes is there again, and what it writes is gone. */
  const SEEN_BY_THE_SECOND = `
    INSERT INTO content.film SELECT n * 2, md5(n::text), 'back', now() FROM generate_series(1, 50) n;
    DELETE FROM content.film WHERE id BETWEEN 101 AND 200;
    UPDATE content.film SET id = id - 100000 WHERE id > 100000`;

  async function followed(batch_size: number) {
    const follow = { check_every_seconds: 3600 };
    const pipeline = await chaos.createIndex("follow", { follow, batch_size });
    await recordChangesOf(chaos.database, pipeline);
    await chaos.store.requests.run(pipeline.id, "api");
    const first = chaos.runner();
    await chaos.atRest();
    await first.stop();
    await chaos.query(SEEN_BY_BOTH);
    await chaos.store.requests.run(pipeline.id, "api");
    return pipeline;
  }

  /** Another one has followed everything in a round of its own, while this one is frozen. */
  async function overtake(zombie: VitrinaProcess, { id, index }: { id: PipelineId; index: string }): Promise<void> {
    await chaos.query(SEEN_BY_THE_SECOND);
    await endLeaseOf(chaos, zombie);
    chaos.runner();
    await chaos.atRest();
    const [run] = (await chaos.store.runs.list(id, { limit: 1 })).items;
    expect(run).toMatchObject({ status: "SUCCESS", strategy: "follow", trigger: "recovery" });
    expect(await documentDifferences(chaos, index)).toEqual([]);
  }

  // 200 keys, of which each chunk has 50; after the last one only the position is left to be moved.
  it.each(["keys_found:1", "bulk_ready:2", "chunk_committed:1", "chunk_committed:4"])(
    "R4.7 neither brings back nor deletes a document, nor moves the position: frozen at %s",
    async (point) => {
      const pipeline = await followed(10);
      const zombie = chaos.runner(`${point}:stop`, { LEASE_SECONDS: "600" });
      await faulted(zombie, point, "stop");
      await overtake(zombie, pipeline);
      const state = async () => ({
        versions: await versions(pipeline.index),
        family: await chaos.search.family(pipeline.index),
        position: (await chaos.store.follow.get(pipeline.id)).position,
      });
      const before = await state();
      zombie.signal("SIGCONT");
      await printed(zombie, /run dropped/);
      expect(await state()).toEqual(before);
      expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
    },
  );

  it("R4.7 loses by its versions, deletes among them, where the cluster had its request before", async () => {
    const proxy = await startFaultProxy(chaos.search.url);
    try {
      const pipeline = await followed(100);
      proxy.next("late");
      const zombie = chaos.runner(undefined, { ELASTICSEARCH_URL: proxy.url, LEASE_SECONDS: "600" });
      await until("its request is on its way", () => proxy.happened.includes("late"));
      zombie.signal("SIGSTOP");
      await overtake(zombie, pipeline);
      const { items } = JSON.parse(await proxy.release()) as { items: Record<string, { status: number }>[] };
      const results = items.flatMap((item) =>
        Object.entries(item).map(([action, { status }]) => `${action} ${status}`),
      );
      expect(results.sort()).toEqual([...Array(100).fill("delete 409"), ...Array(100).fill("index 409")]);
      expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
      zombie.signal("SIGCONT");
      await printed(zombie, /run dropped/);
      expect(await documentDifferences(chaos, pipeline.index)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });
});
