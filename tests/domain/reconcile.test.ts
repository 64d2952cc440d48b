import { describe, expect, it } from "vitest";
import {
  type Circumstances,
  type Differences,
  explain,
  judge,
  reconcileStatus,
  verdictOfFailure,
} from "../../src/domain/reconcile.ts";

const NOTHING = { count: 0, keys: [] };
const SOURCE = {
  rows: 0,
  rows_duplicate: 0,
  rows_refused: 0,
  key_min: null,
  key_max: null,
  incremental_key_min: null,
  incremental_key_max: null,
};
const found = (some: Partial<Record<keyof Differences, number>>) => {
  const of = (kind: keyof Differences) => ({ ...NOTHING, count: some[kind] ?? 0 });
  const [missing, extra, different, pending] = [of("missing"), of("extra"), of("different"), of("pending")];
  return { missing, extra, different, pending, source: SOURCE };
};
const quiet = (mode: "full" | "incremental"): Circumstances => ({
  mode,
  runWasActive: false,
  unfollowed: "nothing",
  watermarkIsForeign: false,
});
const busy = (mode: "full" | "incremental"): Circumstances => ({ ...quiet(mode), runWasActive: true });

describe("the run of a reconcile", () => {
  it.each([
    ["REQUESTED", null, "WAITING"],
    ["RUNNING", "MATCH", "RUNNING"],
    ["SUCCESS", "DIFFERENT", "DIFFERENT"],
    ["FAILED", "INCONCLUSIVE", "INCONCLUSIVE"],
    ["FAILED", null, "FAILED"],
  ] as const)("that is %s, with the verdict %s, is told as %s", (status, verdict, told) => {
    expect(reconcileStatus(status, verdict)).toBe(told);
  });

  it("that fails by trouble that may pass, or for lack of time, leaves the question open", () => {
    expect(verdictOfFailure({ code: "DATABASE_BUSY", mayPass: true })).toBe("INCONCLUSIVE");
    expect(verdictOfFailure({ code: "STATEMENT_TIMEOUT", mayPass: false })).toBe("INCONCLUSIVE");
    expect(verdictOfFailure({ code: "TARGET_MISSING", mayPass: false })).toBeNull();
  });
});

describe("judge", () => {
  it("R7 pending rows are no difference", () => {
    expect(judge(found({ pending: 5 }), quiet("incremental"))).toBe("MATCH");
  });

  it.each(["missing", "extra", "different"] as const)("R7 one row %s is a difference", (kind) => {
    expect(judge(found({ [kind]: 1 }), quiet("full"))).toBe("DIFFERENT");
    expect(judge(found({ [kind]: 1 }), quiet("incremental"))).toBe("DIFFERENT");
    expect(judge(found({ [kind]: 1 }), busy("incremental"))).toBe("DIFFERENT");
  });

  it("R7 a full load at the same time explains every difference, and no difference needs no explanation", () => {
    expect(judge(found({ missing: 1 }), busy("full"))).toBe("INCONCLUSIVE");
    expect(judge(found({}), busy("full"))).toBe("MATCH");
  });

  it("changes that a run follows by itself explain a difference; those that wait for a person do not", () => {
    const follows: Circumstances = { ...quiet("full"), mode: "follow" };
    expect(judge(found({ missing: 1 }), { ...follows, unfollowed: "soon" })).toBe("INCONCLUSIVE");
    expect(judge(found({ missing: 1 }), { ...follows, unfollowed: { because: "FAILED" } })).toBe("DIFFERENT");
    expect(judge(found({}), { ...follows, unfollowed: { because: "FAILED" } })).toBe("MATCH");
  });
});

describe("explain", () => {
  it("says nothing where there is nothing to explain", () => {
    expect(explain(found({}), busy("full"))).toEqual([]);
    expect(explain(found({}), quiet("incremental"))).toEqual([]);
  });

  it.each([
    ["a run at the same time", found({ missing: 1 }), busy("full"), /A run of this pipeline was active/],
    ["changes that wait", found({ missing: 1 }), { ...quiet("full"), unfollowed: "soon" }, /that the next run follows/],
    [
      "changes that wait for a person",
      found({ missing: 1 }),
      { ...quiet("full"), unfollowed: { because: "FAILED" } },
      /not in the target, and no run starts by itself: the pipeline is FAILED\./,
    ],
    ["deletions", found({ extra: 1 }), quiet("incremental"), /deleted from the source/],
    ["a foreign checkpoint", found({}), { ...quiet("incremental"), watermarkIsForeign: true }, /another query/],
    ["refused rows", { ...found({}), source: { ...SOURCE, rows_refused: 1 } }, quiet("full"), /does not fit/],
    ["duplicates", { ...found({}), source: { ...SOURCE, rows_duplicate: 1 } }, quiet("full"), /the last of them/],
  ] as const)("tells of %s", (_, differences, circumstances, sentence) => {
    expect(explain(differences, circumstances)).toEqual([expect.stringMatching(sentence)]);
  });
});
