import { inject } from "vitest";
import type { Registry } from "../../src/connectors/registry.ts";
import { type RunningPart, startApi } from "../../src/main/api.ts";
import { ownConnections, ownSource } from "../../src/main/own-source.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { createLog, type Log } from "../../src/observability/log.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { type SpawnOptions, spawnVitrina, type VitrinaProcess } from "./vitrina-process.ts";

/** A database with a readable schema `content`, and whatever a test starts on it. All of that ends with the stand. */
export interface Stand {
  readonly database: TestDatabase;
  readonly store: MetaStore;
  query: TestDatabase["query"];
  /** In this process, as is the runner. `isBeside`: it knows, as with `npm start`, what the runner records by itself. */
  startApi(log?: Log, isBeside?: boolean): Promise<RunningPart & { readonly url: string }>;
  /** It records the changes of the database by itself, as `npm start` does. */
  startRunner(log?: Log): Promise<void>;
  stopRunner(): Promise<void>;
  /** A real process; killed at the end if it still lives. */
  spawn(args: string[], options?: SpawnOptions): VitrinaProcess;
  /** Anything else that must be stopped, last in first out. */
  onClose(work: () => Promise<unknown>): void;
  close(): Promise<void>;
}

interface StandOptions {
  readonly settings?: Record<string, string>;
  /** Instead of the connectors that there are. */
  readonly registry?: Registry | undefined;
  /** Instead of one of its own. */
  readonly database?: TestDatabase;
}

const SILENT = createLog({ level: "silent" });

const READABLE_SCHEMA = `CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
  ALTER DEFAULT PRIVILEGES IN SCHEMA content GRANT SELECT ON TABLES TO vitrina_reader`;

export async function openStand({ settings = {}, registry, database: given }: StandOptions = {}): Promise<Stand> {
  const database = given ?? (await createTestDatabase(inject("postgresUrl"), { settings, registry }));
  await database.query(READABLE_SCHEMA);
  let runner: RunningPart | undefined;
  const endings: (() => Promise<unknown>)[] = [];
  const onClose = (work: () => Promise<unknown>): void => void endings.push(work);
  const started = <Part extends RunningPart>(part: Part): Part => {
    let stopped: Promise<void> | undefined;
    const stop = (): Promise<void> => {
      stopped ??= part.stop();
      return stopped;
    };
    onClose(stop);
    return { ...part, stop };
  };
  return {
    database,
    store: database.openStore(),
    query: database.query,
    async startApi(log = SILENT, isBeside = false) {
      const { settings, urls } = database;
      return started(await startApi(settings, urls, log, undefined, isBeside ? ownConnections(settings, urls) : []));
    },
    async startRunner(log = SILENT) {
      const { settings, urls, url } = database;
      runner = started(await startRunner(settings, urls, log, undefined, ownSource(settings, urls, url)));
    },
    async stopRunner() {
      await runner?.stop();
    },
    spawn(args, options) {
      const child = spawnVitrina(args, options);
      onClose(() => {
        child.signal("SIGKILL");
        return child.exited;
      });
      return child;
    },
    onClose,
    async close() {
      for (const end of endings.reverse()) await end();
      await database.drop();
    },
  };
}
