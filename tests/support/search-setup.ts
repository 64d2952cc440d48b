import type { TestProject } from "vitest/node";
import { SEARCH_SERVERS, type SearchServerName, startSearchServer } from "../../scripts/search-servers.mjs";

declare module "vitest" {
  interface ProvidedContext {
    searchUrl: string;
    /** Null: a server that was given, and that no test may kill. */
    searchServer: SearchServerName | null;
  }
}

/** One real server for the whole suite; every test uses index names of its own. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env["ELASTICSEARCH_URL"];
  if (given !== undefined && given !== "") {
    project.provide("searchUrl", given);
    project.provide("searchServer", null);
    return async () => undefined;
  }
  const name = process.env["TEST_SEARCH_SERVER"] ?? "opensearch3";
  if (!Object.hasOwn(SEARCH_SERVERS, name)) throw new Error(`There is no search server ${name}.`);
  const server = await startSearchServer(name as SearchServerName);
  project.provide("searchUrl", server.url);
  project.provide("searchServer", name as SearchServerName);
  return () => server.stop();
}
