import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { loadDemo } from "../../src/main/demo.ts";
import type { MetaStore } from "../../src/meta-store/meta-store.ts";
import type { Settings } from "../../src/settings/settings.ts";
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

const load = (settings: Settings): Promise<string> => loadDemo(settings, database.url, store);
const searched = async (): Promise<string[]> =>
  (await store.listPipelines({ limit: 100 })).items
    .filter(({ target_table }) => target_table.startsWith("es:"))
    .map(({ name }) => name);

describe("R1.4 the demo's pipelines of a search cluster", () => {
  it("come with a cluster that is configured later, once, and stay deleted when they are", async () => {
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
  });
});
