import { describe, expect, it } from "vitest";
import { cycleThrough, type MartReads, martGraph } from "../../src/domain/mart-graph.ts";

const reads = (pipeline: string, target: string, ...tables: string[]): MartReads => ({
  pipeline,
  mode: "full",
  target,
  connection: "main",
  tables,
});

describe("a cycle", () => {
  it("is found over any number of marts, by the shortest way", () => {
    const [a, b, c] = [reads("a", "m.a", "m.b", "m.c"), reads("b", "m.b", "m.c"), reads("c", "m.c", "m.a")];
    expect(cycleThrough(a, [b, c])?.map(({ pipeline }) => pipeline)).toEqual(["a", "c"]);
    expect(cycleThrough(b, [a, c])?.map(({ pipeline }) => pipeline)).toEqual(["b", "c", "a"]);
  });

  it("may consist of one mart", () => {
    expect(cycleThrough(reads("a", "m.a", "m.a"), [])).toHaveLength(1);
  });

  it("is none where others are in one, nor where two marts read the same", () => {
    const others = [reads("b", "m.b", "m.c"), reads("c", "m.c", "m.b"), reads("d", "m.d", "t.x")];
    expect(cycleThrough(reads("a", "m.a", "m.b", "m.d", "t.x"), others)).toBeUndefined();
  });
});

describe("the graph", () => {
  it("joins marts to marts only where the source is the database that they are in", () => {
    const all = [
      reads("a", "m.a", "t.x"),
      reads("b", "m.b", "m.a"),
      { ...reads("c", "m.c", "m.a"), connection: "far" },
    ];
    const { nodes, edges } = martGraph(all, (connection) => connection === "main");
    expect(edges.map(({ from, to }) => `${from} > ${to}`)).toEqual(["main:t.x > m.a", "m.a > m.b", "far:m.a > m.c"]);
    expect(nodes.map(({ id, kind }) => `${kind} ${id}`)).toEqual([
      "table far:m.a",
      "mart m.a",
      "mart m.b",
      "mart m.c",
      "table main:t.x",
    ]);
    expect(nodes.find(({ id }) => id === "m.a")).toMatchObject({
      pipelines: ["a"],
      reads: ["main:t.x"],
      read_by: ["m.b"],
    });
  });
});
