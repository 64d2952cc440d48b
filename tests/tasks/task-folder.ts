import { spawnSync } from "node:child_process";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Column, Row } from "../../src/domain/row.ts";
import { openTaskHost, type TaskHostConfig } from "../../src/tasks/open-task-host.ts";
import type { TaskHost, TaskLanguage } from "../../src/tasks/task.ts";

export const hasPython = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).status === 0;
if (!hasPython) console.warn("The tests of Python tasks are skipped: there is no python3 from 3.10 on.");

const cleanups: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

/** A space and letters beyond ASCII in the name: both have broken launchers before. */
export async function makeFolder(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "vitrina tasks ü-")));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface TestHost extends TaskHost {
  /** What was logged, as text. */
  readonly logged: string[];
}

/** Not loaded yet; closed after the tests of the file. */
export function makeHost(folder: string | undefined, more: Partial<TaskHostConfig> = {}): TestHost {
  const logged: string[] = [];
  const keep = (fields: object, message: string): void => {
    const text = JSON.stringify(fields, (_, value) => (value instanceof Error ? value.message : value));
    logged.push(`${message} ${text}`);
  };
  const host = openTaskHost({
    folder,
    python: "python3",
    memoryLimitMib: 1024,
    batchTimeoutMs: 20_000,
    startTimeoutMs: 60_000,
    environment: process.env,
    log: { debug: keep, info: keep, warn: keep, error: keep },
    ...more,
  });
  cleanups.push(() => host.close());
  return { ...host, logged };
}

export async function loadHost(
  files: Readonly<Record<string, string>>,
  more: Partial<TaskHostConfig> = {},
): Promise<TestHost> {
  const host = makeHost(await makeFolder(files), more);
  await host.load();
  return host;
}

export const neverAborted = new AbortController().signal;

/** `{ id: "bigint" }` → columns. */
export function columnsOf(types: Readonly<Record<string, string>>): Column[] {
  return Object.entries(types).map(([name, type]) => ({ name, type }));
}

export async function applyOnce(
  host: TaskHost,
  language: TaskLanguage,
  name: string,
  types: Readonly<Record<string, string>>,
  rows: readonly Row[],
  params: unknown = {},
): Promise<readonly Row[]> {
  const transform = await host.open({ language, name, params }, columnsOf(types));
  return transform.apply(rows, neverAborted);
}

/** A module of Python tasks: each body is that of `def run(rows, params)`. */
export function pythonModule(bodies: Readonly<Record<string, string>>, more = ""): string {
  const tasks = Object.entries(bodies).map(([name, body]) => {
    const lines = body.split("\n").map((line) => `    ${line}`);
    return `@task(name="${name}"${more})\ndef ${name}(rows, params):\n${lines.join("\n")}\n`;
  });
  return ["import os, sys, subprocess, time\nfrom vitrina_tasks import task\n", ...tasks].join("\n");
}
