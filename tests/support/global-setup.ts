import { existsSync, rmSync } from "node:fs";
import { mkdtemp, readdir, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { TestProject } from "vitest/node";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import { createTemplate } from "./database.ts";
import { endLeftProcesses, isAlive } from "./left-processes.ts";
import { LONG, NOT_RUN } from "./long.ts";

declare module "vitest" {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

/** One real PostgreSQL for all tests, in a folder of its own and on a free port; every test makes its own database. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const parent = await quickFolder();
  await removeLeftFolders(parent);
  const dataDir = await mkdtemp(join(parent, `vitrina-tests-${process.pid}-`));
  const postgres = await startTestServer(dataDir);
  project.provide("postgresUrl", postgres.url);
  const processList = join(tmpdir(), `${basename(dataDir)}-processes`);
  await writeFile(processList, "");
  project.provide("processList", processList);
  // An interrupted vitest ends without the function below.
  const removeData = (): void => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  const endLeft = (): void => {
    endLeftProcesses(processList);
    removeData();
  };
  process.once("exit", endLeft);
  await createTemplate(postgres.url);
  return async () => {
    process.off("exit", endLeft);
    endLeftProcesses(processList);
    await postgres.stop();
    removeData();
    // Printed at the end, where people read it; the suites that it names run this file, too.
    const isSearchSuite = project.config.include.some((pattern) => pattern.startsWith("tests/search/"));
    if (!isSearchSuite && !LONG) console.log(NOT_RUN);
  };
}

const MEMORY = "/dev/shm";
const ENOUGH_BYTES = 3 * 1024 ** 3;

/** In memory if there is room: each test's database is a few hundred files, which take ten times as long on a disk. */
async function quickFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize >= ENOUGH_BYTES ? MEMORY : tmpdir();
}

/** What a killed run left behind would stay in memory for ever; if its server still runs, it is left alone. */
async function removeLeftFolders(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const owner = /^vitrina-tests-(\d+)-/.exec(name)?.[1];
    if (owner === undefined || isAlive(Number(owner))) continue;
    const folder = join(parent, name);
    if (!existsSync(join(folder, "postgres", "postmaster.pid"))) await rm(folder, { recursive: true, force: true });
  }
}

export function startTestServer(dataDir: string): Promise<EmbeddedPostgres> {
  // Set by scripts/test-postgres.mjs, to run the tests on another version.
  const native = process.env["TEST_POSTGRES_NATIVE"];
  return startEmbeddedPostgres({
    dataDir,
    ...(native && { binaries: { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") } }),
    serverSettings: {
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      max_connections: "300",
      // It comes once a minute, to any table: statistics, and with them plans and data paths, would change by chance.
      autovacuum: "off",
    },
  });
}
