import { expect, it } from "vitest";
import { enableFaults, FAULT_POINTS } from "../../src/observability/fault-points.ts";
import type { Path } from "../support/chaos.ts";
import { faultPointsOf, RECONCILE_POINTS } from "../support/chaos-kills.ts";
import { KINDS_BY_PATH } from "../support/chaos-kinds.ts";
import { SEARCH_KILLS } from "../support/search-chaos.ts";

it("every fault point is one where the chaos tests kill a runner", () => {
  const killed = [
    ...Object.entries(KINDS_BY_PATH).flatMap(([path, kinds]) =>
      kinds.flatMap((kind) => faultPointsOf(kind, path as Path)),
    ),
    ...RECONCILE_POINTS,
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
