import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { demoLacks, loadDemo } from "../../src/main/demo.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Settings } from "../../src/settings/settings.ts";
import type { TaskDescription } from "../../src/tasks/task.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
let store: MetaStore;
let withSearch: Settings;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  store = database.openStore();
  const { settings } = database;
  withSearch = {
    ...settings,
    search: { ...settings.search, urls: ["http://127.0.0.1:1"] },
    targets: { ...settings.targets, indexes: ["*"] },
  };
});
afterAll(() => database.drop());

const load = (settings: Settings, tasks: readonly TaskDescription[] = []): Promise<string> =>
  loadDemo(settings, database.url, store, tasks);
const pipelines = async (): Promise<string[]> =>
  (await store.listPipelines({ limit: 100 })).items.map(({ name }) => name);
const searched = async (): Promise<string[]> => (await pipelines()).filter((name) => name.endsWith("_es"));

describe("R1.4 the demo's pipelines", () => {
  it("of a search cluster come with one that is configured later, once, and stay deleted when they are", async () => {
    expect(await load(database.settings)).toBe("loaded");
    expect(await searched()).toEqual([]);
    expect(await load(database.settings)).toBe("present");

    expect(await load(withSearch)).toBe("extended");
    const added = await searched();
    expect(added.length).toBeGreaterThan(1);

    const { id, name } = await store.getPipeline(added[0] as string);
    await store.deletePipeline(id);
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
    await store.deletePipeline((await store.getPipeline("film_shelf_full")).id);
    expect(await load(withSearch, [task, python])).toBe("extended");
    expect(await pipelines()).toContain("viewer_segments_full");
    expect(await load(withSearch, [task, python])).toBe("present");
    expect(await pipelines()).not.toContain("film_shelf_full");
    expect(await searched()).toEqual(added.filter((one) => one !== name));
  });
});
