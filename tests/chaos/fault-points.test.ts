import { expect, it } from "vitest";
import { enableFaults, FAULT_POINTS } from "../../src/observability/fault-points.ts";
import type { Path } from "../support/chaos.ts";
import { followKills } from "../support/chaos-follow.ts";
import { killsOf, RECONCILE_POINTS } from "../support/chaos-kills.ts";
import { SEARCH_KILLS } from "../support/search-chaos.ts";

const PATHS: readonly Path[] = ["push-down", "stream", "rows", "elsewhere"];

it.each([
  { where: "npm test", long: false },
  { where: "npm run test:chaos", long: true },
])("every fault point is one where $where kills a runner, or the search suite does", ({ long }) => {
  const killed = [
    ...PATHS.flatMap((path) => killsOf(path, long)).flatMap(([, points]) => points),
    ...RECONCILE_POINTS,
    ...Object.values(followKills(long)).flat(),
    ...Object.values(SEARCH_KILLS).flat(),
  ];
  expect(new Set(killed.map((point) => point.split(":")[0]))).toEqual(new Set(FAULT_POINTS));
});

it.each(["batch_comitted:1:kill", "batch_read:0:kill", "batch_read:1:explode", "batch_read:1:delay:long", ""])(
  "a fault that could never happen is refused: %j",
  (spec) => {
    expect(() => enableFaults(spec)).toThrow(/no meaning/);
  },
);
