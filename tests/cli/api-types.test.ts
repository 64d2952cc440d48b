import { readFile, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { apiTypes, type OpenApiDocument } from "../../scripts/api-types.ts";
import { startTestApi, type TestApi } from "../support/api-client.ts";

const FILE = new URL("../../src/cli/api-types.ts", import.meta.url);

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

describe("the types of the command line", () => {
  it("are those of /openapi.json (UPDATE_API_TYPES=1 npx vitest run tests/cli/api-types.test.ts rewrites them)", async () => {
    const document: OpenApiDocument = (await api.get("/openapi.json")).body;
    const types = apiTypes(document);
    if (process.env["UPDATE_API_TYPES"] === "1") await writeFile(FILE, types);
    expect(await readFile(FILE, "utf8")).toBe(types);
  });

  it("refuse a schema that they do not understand", () => {
    const schemas = { Odd: { type: "tuple" } };
    expect(() => apiTypes({ paths: {}, components: { schemas } })).toThrow(/type tuple/);
  });
});
