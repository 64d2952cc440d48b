import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { requireAllowedDeletions } from "../../src/connectors/deletion-guard.ts";
import type {
  BatchPlace,
  BatchResult,
  DeletionGuard,
  Sink,
  SinkRequest,
  SinkWriter,
  TargetKey,
  WrittenBatch,
} from "../../src/connectors/sink.ts";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import type { Column, Row } from "../../src/domain/row.ts";
import type { Target } from "../../src/domain/target.ts";
import { commitBegin as begin, commitGiveUp, commitRows, commitFinish as finish, GUARD } from "../support/commit.ts";

/** What the contract needs to know of a sink: how to make a name, and how to look at a target as its readers do. */
export interface SinkHarness {
  readonly sink: Sink;
  newTarget(): Target;
  /** The titles by id; undefined where there is no target. */
  titles(target: Target): Promise<Map<string, string | null> | undefined>;
  /** The columns that a reader can ask for. */
  columns(target: Target): Promise<string[]>;
}

const COLUMNS: readonly Column[] = [
  { name: "id", type: "bigint" },
  { name: "title", type: "text" },
  { name: "size", type: "integer" },
];
const row = (id: number, title: string | null, size: string | null = "1"): Row => [String(id), title, size];
const rows = (from: number, to: number, title = "film"): Row[] =>
  Array.from({ length: to - from + 1 }, (_, n) => row(from + n, `${title} ${from + n}`));

/** The contract of `src/connectors/sink.ts`, claim by claim, on a real target. */
export function describeSink(name: string, open: () => SinkHarness): void {
  describe(`the sink ${name}`, () => {
    let harness: SinkHarness;
    let target: Target;
    let pipelineId: string;
    let epoch: number;
    let batchNo: number;

    beforeEach(() => {
      harness = open();
      target = harness.newTarget();
      pipelineId = randomUUID();
      epoch = 0;
      batchNo = 0;
    });

    /** Each writer is a claim of its own, as if a runner had taken the pipeline over. */
    async function claim(more: Partial<SinkRequest> = {}): Promise<SinkWriter> {
      epoch += 1;
      const own = epoch;
      return harness.sink.open({
        target,
        columns: COLUMNS,
        key: ["id"],
        createTarget: true,
        addColumns: false,
        load: { kind: "upsert" },
        options: {},
        claim: { pipelineId, runId: randomUUID(), epoch: own, decidedEpoch: 0, batchNo },
        isMetaStore: async () => false,
        lost: new AbortController().signal,
        cancelled: new AbortController().signal,
        requireLease: async () => {
          if (own !== epoch) throw new VitrinaError("LEASE_LOST", "Another claim was made.");
        },
        ...more,
      });
    }
    const REPLACE = {
      load: { kind: "replace", loadId: "11111111-2222-3333-4444-555555555555", inKeyOrder: false },
    } as const;
    const place = (): BatchPlace => ({ batchNo: batchNo + 1, after: null, upTo: null });

    /** Commits as the engine does: with a checkpoint beside the data where the sink has transactions. */
    const write = (writer: SinkWriter, given: readonly Row[], keys?: readonly TargetKey[]): Promise<BatchResult> => {
      const record = async ({ transaction }: WrittenBatch): Promise<void> => {
        const { kept } = writer.commits;
        const reached = { batchNo: batchNo + 1, position: ["0"], fingerprint: "f", safePoint: null };
        if (kept !== undefined && transaction !== undefined) await kept.recordIn(transaction, reached);
        batchNo += 1;
      };
      return commitRows(writer, given, place(), record, keys);
    };
    async function load(given: readonly Row[], guard?: DeletionGuard): Promise<number> {
      const writer = await claim(REPLACE);
      await begin(writer);
      await write(writer, given);
      const deleted = await finish(writer, guard);
      await writer.close();
      return deleted;
    }
    async function upsert(given: readonly Row[], more: Partial<SinkRequest> = {}): Promise<BatchResult> {
      const writer = await claim(more);
      await begin(writer);
      const result = await write(writer, given);
      await writer.close();
      return result;
    }
    const DELETES = { load: { kind: "upsert", deletes: true } } as const;
    /** The rows are all that the source has for the keys. */
    async function follow(
      given: readonly Row[],
      keys: readonly TargetKey[],
      more: Partial<SinkRequest> = {},
    ): Promise<BatchResult> {
      const writer = await claim({ ...DELETES, ...more });
      await begin(writer);
      const result = await write(writer, given, keys);
      await writer.close();
      return result;
    }
    const keys = (...ids: number[]): TargetKey[] => ids.map((id) => [String(id)]);
    const titles = async (): Promise<Record<string, string | null> | undefined> => {
      const found = await harness.titles(target);
      return found === undefined ? undefined : Object.fromEntries(found);
    };

    it("R1.3 creates a missing target only when it may, and says so", async () => {
      await expect(claim({ createTarget: false })).rejects.toMatchObject({ code: "TARGET_MISSING" });
      await expect(claim({ createTarget: false, ...REPLACE })).rejects.toMatchObject({ code: "TARGET_MISSING" });
      await upsert([row(1, "a")]);
      expect(await titles()).toEqual({ 1: "a" });
    });

    it("refuses a key that is missing, before anything is written", async () => {
      await expect(claim({ key: [] })).rejects.toMatchObject({ code: "KEY_MISSING" });
      await expect(claim({ key: ["other"] })).rejects.toMatchObject({ code: "KEY_NOT_IN_QUERY" });
      expect(await titles()).toBeUndefined();
    });

    it("R4.3 shows a batch of an upsert at once, and writing it twice is writing it once", async () => {
      expect(await upsert([row(1, "a"), row(2, "b")])).toMatchObject({ rows_written: 2, rejects: [] });
      expect(await titles()).toEqual({ 1: "a", 2: "b" });
      await upsert([row(2, "c"), row(3, null)]);
      await upsert([row(2, "c"), row(3, null)]);
      expect(await titles()).toEqual({ 1: "a", 2: "c", 3: null });
    });

    it("R4.4 a batch whose checkpoint failed is simply written again", async () => {
      const writer = await claim();
      await begin(writer);
      const failing = commitRows(writer, [row(1, "a"), row(2, "b")], place(), async () => {
        throw new VitrinaError("DATABASE_UNAVAILABLE", "The meta-store is away.");
      });
      await expect(failing).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
      await writer.close();
      await upsert([row(1, "a"), row(2, "b"), row(3, "c")]);
      expect(await titles()).toEqual({ 1: "a", 2: "b", 3: "c" });
    });

    it("keeps the last of several rows with one key, and every batch adds up", async () => {
      const result = await upsert([row(1, "first"), row(2, "b"), row(1, "last")]);
      expect(result).toMatchObject({ rows_written: 2, rows_unchanged: 0, rows_deduplicated: 1 });
      expect(await titles()).toEqual({ 1: "last", 2: "b" });
    });

    it("sets refused rows aside, and writes the others of the batch", async () => {
      await upsert([row(1, "a")]);
      const bad = row(2, "b", "not a number");
      const result = await upsert([...rows(3, 60), bad, [null, "no key", "1"], row(61, "last")]);
      expect(result).toMatchObject({ rows_written: 59, rows_deduplicated: 0 });
      expect(result.rejects.map(({ row: [id] }) => id).sort()).toEqual(["2", null].sort());
      for (const { code, error } of result.rejects) {
        expect(code).toBe("ROW_REFUSED");
        expect(error).toMatch(/\w+/);
      }
      expect(Object.keys((await titles()) ?? {})).toHaveLength(60);
    });

    it("refuses a column that the target lacks, unless it may add it", async () => {
      await upsert([row(1, "a")]);
      const columns = [...COLUMNS, { name: "year", type: "integer" }];
      const wider = [...row(2, "b"), "1977"];
      await expect(upsert([wider], { columns })).rejects.toMatchObject({ code: "TARGET_COLUMN_MISSING" });
      expect(await titles()).toEqual({ 1: "a" });
      await upsert([wider], { columns, addColumns: true });
      expect(await harness.columns(target)).toEqual(["id", "size", "title", "year"]);
      expect(await titles()).toEqual({ 1: "a", 2: "b" });
    });

    it("R5.1 shows nothing of a full load before its end, and then exactly what was written", async () => {
      await load(rows(1, 30));
      const writer = await claim(REPLACE);
      await begin(writer);
      await write(writer, rows(11, 20, "new"));
      expect(await titles()).toEqual(Object.fromEntries(rows(1, 30).map(([id, title]) => [id, title])));
      await write(writer, rows(21, 30, "new"));
      expect(await finish(writer)).toBe(10);
      await writer.close();
      expect(await titles()).toEqual(Object.fromEntries(rows(11, 30, "new").map(([id, title]) => [id, title])));
    });

    it("R4.7 continues a full load under a later claim", async () => {
      const first = await claim(REPLACE);
      expect(first.resumed).toBe(false);
      await begin(first);
      await write(first, rows(1, 10));
      await first.close();
      const second = await claim(REPLACE);
      expect(second.resumed).toBe(true);
      await write(second, rows(11, 20));
      await finish(second);
      await second.close();
      expect(Object.keys((await titles()) ?? {})).toHaveLength(20);
    });

    it("forgets an unfinished load when a load starts over", async () => {
      const first = await claim(REPLACE);
      await begin(first);
      await write(first, rows(1, 10));
      await first.close();
      await load(rows(5, 6));
      expect(Object.keys((await titles()) ?? {})).toEqual(["5", "6"]);
    });

    it("clears an unfinished load away, which is not continued then, and leaves what is read", async () => {
      const OWN = { load: { ...REPLACE.load, loadId: pipelineId } };
      await load(rows(1, 3));
      const writer = await claim(OWN);
      await begin(writer);
      await write(writer, rows(7, 9));
      await writer.close();
      const isContinued = async (): Promise<boolean> => {
        const later = await claim(OWN);
        await later.close();
        return later.resumed;
      };
      expect(await isContinued()).toBe(true);
      const request = { target, pipelineId, options: { keep_previous_hours: 0 }, isShared: false };
      for (const _ of ["once", "again"]) expect(await harness.sink.clearAway(request)).toBeNull();
      expect(await isContinued()).toBe(false);
      expect(Object.keys((await titles()) ?? {})).toEqual(["1", "2", "3"]);
    });

    it("R5.1 refuses to empty a target, or to delete too much of it, and changes nothing", async () => {
      await load(rows(1, 30));
      const before = await titles();
      await expect(load([])).rejects.toMatchObject({ code: "SOURCE_EMPTY" });
      await expect(load(rows(1, 10))).rejects.toMatchObject({ code: "TOO_MANY_DELETIONS" });
      expect(await titles()).toEqual(before);
      expect(await load(rows(1, 10), { allowEmpty: false, maxDeletePercent: 70 })).toBe(20);
      expect(await load([], { allowEmpty: true, maxDeletePercent: 0 })).toBe(10);
      expect(await titles()).toEqual({});
    });

    it("R5.1 a load that was given up leaves the target as it was, and is not continued", async () => {
      await load(rows(1, 3));
      const writer = await claim(REPLACE);
      await begin(writer);
      await write(writer, rows(7, 9));
      await commitGiveUp(writer);
      await writer.close();
      expect(Object.keys((await titles()) ?? {})).toEqual(["1", "2", "3"]);
      await load(rows(2, 4));
      expect(Object.keys((await titles()) ?? {})).toEqual(["2", "3", "4"]);
    });

    it("R4.7 lets nothing of an earlier claim through once a later one has written: upsert", async () => {
      const stale = await claim();
      await begin(stale);
      await write(stale, [row(1, "old"), row(2, "old")]);
      const owner = await claim();
      await begin(owner);
      await write(owner, [row(1, "new")]);
      await expect(write(stale, [row(1, "stale"), row(2, "stale"), row(3, "stale")])).rejects.toMatchObject({
        code: "LEASE_LOST",
      });
      await stale.close();
      await owner.close();
      expect(await titles()).toEqual({ 1: "new", 2: "old" });
    });

    it("R4.7 lets nothing of an earlier claim through once a later one has written: full load", async () => {
      await load(rows(1, 3, "live"));
      const stale = await claim(REPLACE);
      await begin(stale);
      await write(stale, rows(1, 2, "old"));
      const owner = await claim(REPLACE);
      await write(owner, rows(3, 4, "new"));
      await expect(write(stale, rows(3, 9, "stale"))).rejects.toMatchObject({ code: "LEASE_LOST" });
      const staleEnd = async (): Promise<void> => {
        const finished = await stale.finish(GUARD);
        try {
          if (finished.transaction !== undefined) await stale.commits.kept?.fenceIn(finished.transaction);
          await finished.commit();
        } finally {
          await finished.rollback();
        }
      };
      await expect(staleEnd()).rejects.toThrow();
      await stale.close();
      expect(await titles()).toEqual({ 1: "live 1", 2: "live 2", 3: "live 3" });
      await finish(owner);
      await owner.close();
      expect(await titles()).toEqual({ 1: "old 1", 2: "old 2", 3: "new 3", 4: "new 4" });
    });

    it("deletes what it has for keys that come without a row, and nothing else", async () => {
      await upsert(rows(1, 6));
      const result = await follow([row(2, "changed"), row(7, "new")], keys(1, 2, 3, 7));
      expect(result).toMatchObject({ rows_deleted: 2, rows_deduplicated: 0, rejects: [] });
      expect(result.rows_written + result.rows_unchanged).toBe(2);
      const left = { 2: "changed", 4: "film 4", 5: "film 5", 6: "film 6", 7: "new" };
      expect(await titles()).toEqual(left);
      // A row that has none of the keys is written all the same, and deletes nothing.
      expect(await follow([row(8, "other")], [])).toMatchObject({ rows_deleted: 0 });
      expect(await titles()).toEqual({ ...left, 8: "other" });
    });

    it("deletes by keys alone, whether they come twice, are unknown, or are no keys of it at all", async () => {
      await upsert(rows(1, 3));
      const odd = [["no number"], ["99999999999999999999999"], [""], ["'; --\u0000"], ["x".repeat(600)]];
      expect(await follow([], [...keys(1, 1, 9), ...odd, ...keys(1)])).toMatchObject({
        rows_written: 0,
        rows_unchanged: 0,
        rows_deleted: 1,
        rejects: [],
      });
      expect(await titles()).toEqual({ 2: "film 2", 3: "film 3" });
      expect(await follow([], keys(1, 2, 3))).toMatchObject({ rows_deleted: 2 });
      expect(await titles()).toEqual({});
      await follow([row(2, "again")], keys(2));
      expect(await titles()).toEqual({ 2: "again" });
    });

    it("leaves what it has for a refused row as it is, and deletes the other keys of the batch", async () => {
      await upsert(rows(1, 4));
      const result = await follow(
        [row(1, "bad", "not a number"), row(2, "good"), [null, "no key", "1"]],
        keys(1, 2, 3),
      );
      expect(result).toMatchObject({ rows_written: 1, rows_deleted: 1 });
      expect(result.rejects).toHaveLength(2);
      expect(await titles()).toEqual({ 1: "film 1", 2: "good", 4: "film 4" });
      // Refused among a thousand keys, of which every other one is gone.
      const many = Array.from({ length: 1000 }, (_, n) => n + 1);
      await upsert(many.map((id) => row(id, "old")));
      const half = many.filter((id) => id % 2 === 0).map((id) => row(id, "new", id === 500 ? "x" : "1"));
      expect(await follow(half, keys(...many))).toMatchObject({ rows_written: 499, rows_deleted: 500 });
      const left = await titles();
      expect(Object.keys(left ?? {})).toHaveLength(500);
      expect(left?.["500"]).toBe("old");
    });

    it("knows a key of several columns, in its own order, by any name", async () => {
      const odd = "a \"b' c";
      const columns = [...COLUMNS, { name: odd, type: "text" }];
      const one = (id: number, size: string, of: string): Row => [...row(id, `film ${id}`, size), of];
      const more = { columns, key: [odd, "size"], ...DELETES };
      await follow([one(1, "1", "x,y"), one(2, "2", "x,y"), one(3, "1", 'x"'), one(4, "1", "")], [], more);
      const gone: TargetKey[] = [
        ["x,y", "1"],
        ["x,y", "2"],
        ['x"', "1"],
        ["", "1"],
        ["1", "x,y"],
      ];
      expect(await follow([one(5, "2", "x,y")], gone, more)).toMatchObject({ rows_deleted: 3 });
      expect(await titles()).toEqual({ 5: "film 5" });
    });

    it("R4.4 a batch that deletes, and whose checkpoint failed, is simply written again", async () => {
      await upsert(rows(1, 3));
      const writer = await claim(DELETES);
      await begin(writer);
      const failing = async (): Promise<void> => {
        throw new VitrinaError("DATABASE_UNAVAILABLE", "The meta-store is away.");
      };
      const batch = [row(1, "new")];
      await expect(commitRows(writer, batch, place(), failing, keys(1, 2))).rejects.toThrow();
      await writer.close();
      await follow(batch, keys(1, 2));
      expect(await titles()).toEqual({ 1: "new", 3: "film 3" });
    });

    it("R4.7 lets nothing of an earlier claim through once a later one has written: deletes", async () => {
      await upsert(rows(1, 5));
      const stale = await claim(DELETES);
      await begin(stale);
      await write(stale, [row(1, "old")], keys(1));
      const owner = await claim(DELETES);
      await begin(owner);
      await write(owner, [row(3, "new")], keys(1, 2, 3));
      const LOST = { code: "LEASE_LOST" };
      // It neither deletes what is there nor brings back what is gone.
      await expect(write(stale, [], keys(3, 4))).rejects.toMatchObject(LOST);
      await expect(write(stale, [row(1, "stale"), row(2, "stale")], keys(1, 2, 5))).rejects.toMatchObject(LOST);
      await stale.close();
      await owner.close();
      expect(await titles()).toEqual({ 3: "new", 4: "film 4", 5: "film 5" });
    });

    it("counts its rows up to a limit, and those of some keys", async () => {
      const writer = await claim(DELETES);
      await begin(writer);
      expect(writer.deletesRows).toBe(true);
      expect([await writer.countUpTo(5), await writer.countKeys(keys(1))]).toEqual([0, 0]);
      await write(writer, rows(1, 30));
      expect(await writer.countUpTo(7)).toBe(7);
      expect(await writer.countUpTo(30)).toBe(30);
      expect(await writer.countUpTo(Number.MAX_SAFE_INTEGER)).toBe(30);
      expect(await writer.countKeys([...keys(1, 30, 31, 1), ["no number"]])).toBe(2);
      expect(await writer.countKeys([])).toBe(0);
      await write(writer, [], keys(...Array.from({ length: 29 }, (_, n) => n + 2)));
      expect([await writer.countUpTo(30), await writer.countKeys(keys(1, 2))]).toEqual([1, 1]);
      await writer.close();
    });

    it("R5.1 refuses keys that would empty it, or delete too much of it, before any of them is deleted", async () => {
      const writer = await claim(DELETES);
      await begin(writer);
      await write(writer, rows(1, 30));
      const ids = (count: number) => keys(...Array.from({ length: count }, (_, n) => n + 1));
      const judge = async (asked: readonly TargetKey[], gone: readonly TargetKey[], guard: Partial<DeletionGuard>) => {
        const isGone = new Set(gone.map(String));
        const present = asked.filter((key) => !isGone.has(String(key)));
        const findPresent = vi.fn(async function* () {
          yield present.slice(0, 10);
          yield present.slice(10);
        });
        const judged = requireAllowedDeletions("it", writer, { ...GUARD, ...guard }, asked, findPresent);
        const code = await judged.then(
          () => "allowed",
          (error: unknown) => (error as VitrinaError).code,
        );
        return [code, findPresent.mock.calls.length];
      };
      // Half of them may go, whichever they are: the source is not even asked.
      expect(await judge(ids(15), ids(15), {})).toEqual(["allowed", 0]);
      expect(await judge(ids(16), ids(16), {})).toEqual(["TOO_MANY_DELETIONS", 1]);
      expect(await judge(ids(16), ids(15), {})).toEqual(["allowed", 1]);
      // Keys that it never had do not count.
      expect(await judge(ids(60), ids(60).slice(16), {})).toEqual(["allowed", 1]);
      expect(await judge(ids(60), ids(60).slice(14), {})).toEqual(["TOO_MANY_DELETIONS", 1]);
      expect(await judge(ids(30), ids(30), { maxDeletePercent: 100 })).toEqual(["SOURCE_EMPTY", 1]);
      expect(await judge(ids(31), ids(30), { maxDeletePercent: 100 })).toEqual(["allowed", 1]);
      expect(await judge(ids(30), ids(30), { maxDeletePercent: 100, allowEmpty: true })).toEqual(["allowed", 0]);
      expect(await judge(ids(30), ids(30), { allowEmpty: true })).toEqual(["allowed", 1]);
      expect(await judge(ids(1), ids(1), { maxDeletePercent: 0 })).toEqual(["TOO_MANY_DELETIONS", 1]);
      expect(await judge(ids(1), [], { maxDeletePercent: 0 })).toEqual(["allowed", 1]);
      expect(await judge([], [], { maxDeletePercent: 0 })).toEqual(["allowed", 0]);
      await writer.close();
      expect(Object.keys((await titles()) ?? {})).toHaveLength(30);
    });
  });
}
