import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { DEMO_TASKS, demoLacks, findTasks, loadDemo } from "../../src/main/demo.ts";
import { startRunner } from "../../src/main/runner.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import { createLog } from "../../src/observability/log.ts";
import { parseSettings, type Settings } from "../../src/settings/settings.ts";
import type { TaskDescription } from "../../src/tasks/task.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

let database: TestDatabase;
let store: MetaStore;
let withSearch: Settings;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  store = database.openStore();
  const { settings } = database;
  const search = { ELASTICSEARCH_URL: "http://127.0.0.1:1", TARGET_INDEXES: "*" };
  const { sinks, targets } = parseSettings(search, process.cwd());
  withSearch = { ...settings, sinks, targets };
});
afterAll(() => database.drop());

const load = (settings: Settings, tasks: readonly TaskDescription[] = []): Promise<string> =>
  loadDemo(settings, database.url, store.pipelines, tasks);
const pipelines = async (): Promise<string[]> =>
  (await store.pipelines.list({ limit: 100 })).items.map(({ name }) => name);
const searched = async (): Promise<string[]> => (await pipelines()).filter((name) => name.endsWith("_es"));

it("R1.4 a row of the demo's marts has updated_at, and a run changes it with the row and not otherwise", async () => {
  const withTasks = { ...database.settings, tasks: { ...database.settings.tasks, folder: DEMO_TASKS } };
  const log = createLog({ level: "silent" });
  const tasks = await findTasks(withTasks, log);
  expect(await load(withTasks, tasks)).toBe("loaded");
  const runner = await startRunner(withTasks, database.urls, log);
  const runAll = async (): Promise<number[]> => {
    const { items } = await store.pipelines.list({ limit: 100 });
    for (const { id } of items) await store.requests.run(id, "api");
    return Promise.all(
      items.map(({ id }) =>
        until("the run ends", async () => {
          const [run] = (await store.runs.list(id, { limit: 1 })).items;
          return (await store.pipelines.get(id)).status === "IDLE" && run?.status === "SUCCESS" && [run.rows_written];
        }),
      ),
    ).then((counts) => counts.flat());
  };
  const rowsOf = (table: string) =>
    database.query(`SELECT t::text AS row, updated_at::text FROM ${table} t ORDER BY 1`);
  const allRows = async () => {
    const { items } = await store.pipelines.list({ limit: 100 });
    return Promise.all(items.map(({ target_table }) => rowsOf(target_table)));
  };
  try {
    expect(Math.min(...(await runAll()))).toBeGreaterThan(0);
    const first = await allRows();
    expect(Math.max(...(await runAll()))).toBe(0);
    expect(await allRows()).toEqual(first);
    await database.query("UPDATE content.genre SET description = 'changed' WHERE name = 'Drama'");
    expect((await runAll()).filter((written) => written > 0)).toEqual([1]);
    const before = new Set(first.flat().map(({ updated_at }) => updated_at));
    const changed = (await allRows()).flat().filter(({ updated_at }) => !before.has(updated_at));
    expect(changed).toEqual([{ row: expect.stringContaining("Drama"), updated_at: expect.any(String) }]);
  } finally {
    await runner.stop();
    for (const { id } of (await store.pipelines.list({ limit: 100 })).items) await store.pipelines.delete(id);
  }
});

describe("R1.4 the demo's pipelines", () => {
  it("of a search cluster come with one that is configured later, once, and stay deleted when they are", async () => {
    expect(await load(database.settings)).toBe("loaded");
    expect(await searched()).toEqual([]);
    expect(await load(database.settings)).toBe("present");

    expect(await load(withSearch)).toBe("extended");
    const added = await searched();
    expect(added.length).toBeGreaterThan(1);

    const { id, name } = await store.pipelines.get(added[0] as string);
    await store.pipelines.delete(id);
    expect(await load(withSearch)).toBe("present");
    expect(await searched()).toEqual(added.filter((one) => one !== name));

    // The same for code tasks: first the module, then a Python.
    const task = { name: "normalise_title", language: "TYPESCRIPT", description: "", params: {} } as const;
    expect(await load(withSearch, [task])).toBe("extended");
    expect(await pipelines()).toContain("film_shelf_full");
    expect(await demoLacks(withSearch, [task])).toEqual([
      "The demo comes without viewer_segments_full: TASKS_DIR has no PYTHON task viewer_segment.",
    ]);
    const python = { ...task, name: "viewer_segment", language: "PYTHON" } as const;
    await store.pipelines.delete((await store.pipelines.get("film_shelf_full")).id);
    expect(await load(withSearch, [task, python])).toBe("extended");
    expect(await pipelines()).toContain("viewer_segments_full");
    expect(await load(withSearch, [task, python])).toBe("present");
    expect(await pipelines()).not.toContain("film_shelf_full");
    expect(await searched()).toEqual(added.filter((one) => one !== name));
  });
});
