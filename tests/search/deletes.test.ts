import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import type { IndexOptions } from "../../src/connectors/elasticsearch/options.ts";
import type { SinkWriter, TargetKey } from "../../src/connectors/sink.ts";
import type { Row } from "../../src/domain/row.ts";
import { commitBegin, commitRows } from "../support/commit.ts";
import { type SearchView, searchView } from "../support/search-bench.ts";
import { searchClaims } from "../support/search-claims.ts";
import { type BulkFault, type FaultProxy, startFaultProxy } from "../support/search-fault-proxy.ts";
import { until } from "../support/until.ts";

/** Deletes by key as a load that follows its source sends them, with requests that come late, get lost, or have no alias. */
let search: SearchView;
let proxy: FaultProxy;
let index: string;
let claimNext: ReturnType<typeof searchClaims>;
beforeEach(async () => {
  search = searchView(inject("searchUrl"));
  proxy = await startFaultProxy(search.url);
  index = `d_${randomUUID().slice(0, 8)}`;
  claimNext = searchClaims();
});
afterEach(async () => {
  await proxy.close();
  await search.drop(index);
});

async function claim(url = search.url, options: IndexOptions = {}): Promise<SinkWriter> {
  const load = { kind: "upsert", deletes: true } as const;
  const writer = await claimNext({ url, index, load, options, requestTimeoutMs: 3_000 });
  await commitBegin(writer);
  return writer;
}

const row = (id: number, title: string): Row => [String(id), title];
const keys = (...ids: number[]): TargetKey[] => ids.map((id) => [String(id)]);
const write = (writer: SinkWriter, rows: readonly Row[], given: readonly TargetKey[], batchNo = 1) =>
  commitRows(writer, rows, { batchNo, after: null, upTo: null }, undefined, given);
const titles = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    [...(await search.documents(index))].map(([id, source]) => [id, (source as { title: string }).title]),
  );

describe("a runner that lost its lease", () => {
  it("R4.7 makes no index of its old alias, although it has nothing but deletes to send", async () => {
    const stale = await claim();
    await write(stale, [row(1, "a"), row(2, "b")], []);
    const owner = await claim();
    await write(owner, [row(1, "new")], keys(1));
    const before = await search.family(index);
    await expect(write(stale, [], keys(1, 2), 2)).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await search.family(index)).toEqual(before);
    expect(await titles()).toEqual({ 1: "new", 2: "b" });
  });

  it("R4.7 deletes nothing by a request that comes late, and brings nothing back", async () => {
    await write(await claim(), [row(1, "a"), row(2, "b"), row(3, "c")], []);
    const stale = await claim(proxy.url);
    proxy.next("late");
    const late = write(stale, [row(2, "late"), row(4, "late")], keys(1, 2, 3, 4));
    late.catch(() => undefined); // its end is awaited below
    await until("the request is on its way", () => proxy.happened.includes("late"));
    const owner = await claim();
    // 2 is gone by now, and 4 is there no longer, or was never; 1 and 3 are there again.
    await write(owner, [row(1, "new"), row(3, "new")], keys(1, 2, 3, 4));
    const { items } = JSON.parse(await proxy.release()) as { items: Record<string, { status: number }>[] };
    expect(items.flatMap((item) => Object.entries(item).map(([action, { status }]) => [action, status]))).toEqual([
      ["index", 409],
      ["index", 409],
      ["delete", 409],
      ["delete", 409],
    ]);
    await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await titles()).toEqual({ 1: "new", 3: "new" });
  });
});

const FAULTS: [BulkFault[]][] = [
  [["some-429"]],
  [["some-500"]],
  [["503", "429"]],
  [["block"]],
  [["silence"]],
  [["cut"]],
  [["short"]],
  [["garbage"]],
];

it.each(FAULTS)("R4.4 deletes bear %j, with rows beside them and alone", async (faults) => {
  const writer = await claim(proxy.url);
  const all = Array.from({ length: 60 }, (_, n) => n + 1);
  await write(
    writer,
    all.map((id) => row(id, "old")),
    [],
  );
  const odd = all.filter((id) => id % 2 === 1 && id <= 40);
  proxy.next(...faults);
  await write(
    writer,
    odd.map((id) => row(id, "new")),
    keys(...all.slice(0, 40)),
    2,
  );
  proxy.next(...faults);
  await write(writer, [], keys(...all.slice(40)), 3);
  expect(proxy.happened).toEqual([...faults, ...faults]);
  expect(await titles()).toEqual(Object.fromEntries(odd.map((id) => [id, "new"])));
});

describe("with write: merge", () => {
  const MERGE: IndexOptions = { write: "merge" };
  /** What another program does: it has a field of its own in the mapping. */
  async function addField(id: number): Promise<void> {
    await search.ask("PUT", `/${index}/_mapping`, { properties: { rating: { type: "integer" } } });
    const { body } = await search.ask("POST", `/${index}/_update/${id}`, { doc: { rating: 5 } });
    expect(body.result).toBe("updated");
  }

  it("a document whose row is gone is deleted, with the fields that others added", async () => {
    const writer = await claim(search.url, MERGE);
    await write(writer, [row(1, "a"), row(2, "b"), row(3, "c")], []);
    for (const id of [1, 2]) await addField(id);
    expect(await write(writer, [row(2, "new")], keys(1, 2, 9), 2)).toMatchObject({ rows_written: 1, rows_deleted: 1 });
    const found = await search.documents(index);
    expect(Object.fromEntries(found)).toEqual({
      2: { id: 2, title: "new", rating: 5 },
      3: { id: 3, title: "c" },
    });
  });

  it("R4.7 a late delete finds that the document is not the one that was read, and its successor decides", async () => {
    await write(await claim(search.url, MERGE), [row(1, "a"), row(2, "b")], []);
    const stale = await claim(proxy.url, MERGE);
    proxy.next("late");
    const late = write(stale, [], keys(1, 2));
    late.catch(() => undefined); // its end is awaited below
    await until("the request is on its way", () => proxy.happened.includes("late"));
    await write(await claim(search.url, MERGE), [row(1, "new")], keys(1, 2));
    await proxy.release();
    await expect(late).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await titles()).toEqual({ 1: "new" });
  });

  it("a document that others change at that moment is read again, and deleted", async () => {
    const writer = await claim(proxy.url, MERGE);
    await write(writer, [row(1, "a"), row(2, "b")], []);
    proxy.next("late");
    const deleting = write(writer, [], keys(1), 2);
    await until("the request is on its way", () => proxy.happened.includes("late"));
    await addField(1);
    await proxy.release();
    expect(await deleting).toMatchObject({ rows_deleted: 1 });
    expect(await titles()).toEqual({ 2: "b" });
  });
});
