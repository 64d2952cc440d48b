/** Which mart reads what: tables → marts → marts. */

/** What a pipeline reads and where it writes. Tables and targets are written alike, so that they can be compared. */
export interface MartReads {
  readonly pipeline: string;
  readonly mode: string;
  readonly target: string;
  readonly connection: string;
  readonly tables: readonly string[];
}

/**
 * The pipelines by which a mart reads itself, beginning with `start`; undefined where it does not. Names alone are
 * compared: whether a source is the database that the marts are in has to be asked.
 */
export function cycleThrough(
  start: MartReads,
  others: readonly MartReads[],
): readonly [MartReads, ...MartReads[]] | undefined {
  const seen = new Set<string>();
  let ways: [MartReads, ...MartReads[]][] = [[start]];
  while (ways.length > 0) {
    const closed = ways.find((way) => way.at(-1)?.tables.includes(start.target) === true);
    if (closed !== undefined) return closed;
    ways = ways.flatMap((way) => {
      const tables = way.at(-1)?.tables ?? [];
      const next = others.filter(({ target, pipeline }) => tables.includes(target) && !seen.has(pipeline));
      for (const { pipeline } of next) seen.add(pipeline);
      return next.map((one): [MartReads, ...MartReads[]] => [...way, one]);
    });
  }
  return undefined;
}

interface GraphNode {
  readonly id: string;
  readonly kind: "table" | "mart";
  /** As SQL writes it, or `es:<index>`. */
  readonly name: string;
  /** Of a table; null for a mart. */
  readonly connection: string | null;
  /** The pipelines that fill a mart. */
  readonly pipelines: readonly string[];
  readonly reads: readonly string[];
  readonly read_by: readonly string[];
}

interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly pipeline: string;
  readonly mode: string;
}

export interface MartGraph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

/** `isOwn`: whether a source connection leads to the database that the marts are in. */
export function martGraph(all: readonly MartReads[], isOwn: (connection: string) => boolean): MartGraph {
  const marts = new Set(all.map(({ target }) => target));
  const edges = all.flatMap(({ pipeline, mode, target, connection, tables }) =>
    tables.map((table): GraphEdge & { readonly table: string; readonly connection: string } => {
      const from = marts.has(table) && isOwn(connection) ? table : `${connection}:${table}`;
      return { from, to: target, pipeline, mode, table, connection };
    }),
  );
  const tables = new Map(edges.filter(({ from }) => !marts.has(from)).map((edge) => [edge.from, edge]));
  const between = (id: string) => ({
    reads: unique(edges.filter(({ to }) => to === id).map(({ from }) => from)),
    read_by: unique(edges.filter(({ from }) => from === id).map(({ to }) => to)),
  });
  const nodes: GraphNode[] = [
    ...[...tables].map(
      ([id, { table, connection }]): GraphNode => ({
        id,
        kind: "table",
        name: table,
        connection,
        pipelines: [],
        ...between(id),
      }),
    ),
    ...[...marts].map(
      (id): GraphNode => ({
        id,
        kind: "mart",
        name: id,
        connection: null,
        pipelines: unique(all.filter(({ target }) => target === id).map(({ pipeline }) => pipeline)),
        ...between(id),
      }),
    ),
  ];
  return {
    nodes: nodes.sort((one, other) => (one.id < other.id ? -1 : 1)),
    edges: edges.map(({ from, to, pipeline, mode }) => ({ from, to, pipeline, mode })),
  };
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}
