import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Registry } from "../../src/connectors/registry.ts";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import type { Run } from "../../src/domain/run.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { askedRuns } from "./asked-runs.ts";
import type { TestDatabase } from "./database.ts";
import { openStand, type Stand } from "./stand.ts";
import { until } from "./until.ts";

const CINEMA_TASKS = fileURLToPath(new URL("../../examples/cinema/tasks", import.meta.url));

/** The tasks of the cinema demo, for pipelines with a task plan. */
export const WITH_TASKS = { TASKS_DIR: CINEMA_TASKS };

/** A database with a readable schema `content`, a store on it, and a runner in this process. */
export interface Bench {
  readonly database: TestDatabase;
  readonly store: MetaStore;
  query: TestDatabase["query"];
  /** A pipeline with a target of its own, created when missing. */
  create(config: object): Promise<Pipeline>;
  startApi: Stand["startApi"];
  startRunner: Stand["startRunner"];
  stopRunner(): Promise<void>;
  /** Requests a run and waits until it has ended, and what follows it by itself, too. */
  run(pipeline: Pipeline): Promise<Run>;
  ended(pipeline: Pipeline): Promise<Run>;
  /** Every row of a relation as text, in the order of its first column. */
  rowsOf(relation: string): Promise<string[]>;
  close(): Promise<void>;
}

export async function openBench(settings: Record<string, string> = {}, registry?: Registry): Promise<Bench> {
  const stand = await openStand({ settings, registry });
  const { database, store } = stand;

  const ended = ({ id }: Pipeline): Promise<Run> =>
    until("the run ends", async () => {
      const [run] = await askedRuns(store, id);
      const { status } = await store.pipelines.get(id);
      const over = run !== undefined && run.status !== "RUNNING" && !["RUN_REQUESTED", "RUNNING"].includes(status);
      return over ? run : undefined;
    });

  return {
    database,
    store,
    query: database.query,
    ended,
    async create(config) {
      const name = `p_${randomUUID().slice(0, 8)}`;
      const whole = { name, target_table: `analytics.${name}`, create_target: true, ...config };
      return store.pipelines.create(newPipelineSchema.parse(whole), "test");
    },
    startApi: stand.startApi,
    startRunner: stand.startRunner,
    stopRunner: stand.stopRunner,
    async run(pipeline) {
      await store.requests.run(pipeline.id, "api");
      return ended(pipeline);
    },
    async rowsOf(relation) {
      const rows = await database.query(`SELECT t::text AS row FROM ${relation} t ORDER BY 1`);
      return rows.map(({ row }) => row as string);
    },
    close: stand.close,
  };
}
