import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type MartGraph, type MartReads, martGraph } from "../../domain/mart-graph.ts";
import { PIPELINE_MODES, type PipelineConfig } from "../../domain/pipeline.ts";
import type { Target } from "../../domain/target.ts";
import { inspectTaskPlan } from "../../domain/task-plan.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { problems } from "../problem.ts";
import { allPipelines, isInOneDatabase, martReads, throughViews } from "./mart-reads.ts";

const ids = z.array(z.string());

const graphSchema = z.object({
  nodes: z.array(
    z.object({
      id: z.string().describe("A mart: its target. A table: the connection, a colon and the table."),
      kind: z.enum(["table", "mart"]),
      name: z.string(),
      connection: z.string().nullable().describe("Of a table, the source it is in; null for a mart."),
      pipelines: ids.describe("The pipelines that fill the mart."),
      reads: ids.describe("The nodes that the mart is made from."),
      read_by: ids.describe("The marts that are made from it."),
    }),
  ),
  edges: z.array(
    z.object({
      from: z.string().describe("What is read."),
      to: z.string().describe("The mart that is made from it."),
      pipeline: z.string(),
      mode: z.enum(PIPELINE_MODES),
    }),
  ),
  notes: z.array(z.string()).describe("What could not be found out."),
});

const getGraph = {
  tags: ["pipelines"],
  operationId: "getGraph",
  summary: "Read what each mart is made from",
  description:
    "Tables, marts, and marts that are made from other marts. Views are resolved to the tables behind them where their source answers.",
  response: { 200: answer("The graph of tables and marts.", graphSchema), ...problems(429) },
};

export function graphRoutes(api: Api, parts: ApiParts): void {
  api.get("/graph", { schema: getGraph }, () => parts.asking(() => readGraph(parts)));
}

type Graph = z.infer<typeof graphSchema>;

async function readGraph(parts: ApiParts): Promise<Graph> {
  const sources = new Map<string, PipelineConfig[]>();
  const all = await allPipelines(parts);
  const target = await inspectableTarget(parts, all);
  for (const config of all) {
    const name = `${config.source_type} ${config.source_connection}`;
    sources.set(name, [...(sources.get(name) ?? []), config]);
  }
  const reads: MartReads[] = [];
  const own = new Set<string>();
  const notes: string[] = [];
  for (const [config, ...others] of sources.values()) {
    if (config === undefined) continue;
    const found = await readsOfSource(parts, [config, ...others], target);
    reads.push(...found.reads);
    if (found.isOwn) own.add(config.source_connection);
    if (found.note !== undefined) notes.push(found.note);
  }
  const { nodes, edges }: MartGraph = martGraph(reads, (connection) => own.has(connection));
  return { nodes, edges, notes } as Graph;
}

interface ReadsOfSource {
  readonly reads: readonly MartReads[];
  /** Whether the source is the database that the marts are in. */
  readonly isOwn: boolean;
  readonly note?: string;
}

async function readsOfSource(
  parts: ApiParts,
  all: readonly [PipelineConfig, ...PipelineConfig[]],
  target: Target | undefined,
): Promise<ReadsOfSource> {
  const [config] = all;
  const named = (await Promise.all(all.map((one) => martReads(parts, one)))).flatMap((reads) => reads ?? []);
  if (named.length === 0) return { reads: named, isOwn: false };
  try {
    const source = await parts.inspector.source(config);
    try {
      const isOwn = target === undefined ? false : await isInOneDatabase(parts, source, target);
      return { reads: await throughViews(source, named), isOwn };
    } finally {
      await source.close();
    }
  } catch (error) {
    if (!(error instanceof VitrinaError) || error.code === "INTERNAL") throw error;
    const note = `The source "${config.source_connection}" did not answer: its views are shown as they are named, and whether it holds the marts is unknown.`;
    return { reads: named, isOwn: false, note };
  }
}

/** A target of the kind that can be in one database with a source. */
async function inspectableTarget(parts: ApiParts, all: readonly PipelineConfig[]): Promise<Target | undefined> {
  for (const config of all) {
    const { target } = inspectTaskPlan(config, parts.targets);
    if (target !== undefined && (await parts.inspector.target(target)) !== undefined) return target;
  }
  return undefined;
}
