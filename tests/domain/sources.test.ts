import { expect, it } from "vitest";
import type { SourceDescription } from "../../src/connectors/description.ts";
import { openConnectors } from "../../src/connectors/index.ts";
import { CONNECTORS } from "../../src/connectors/registry.ts";

const unreachable = async (): Promise<never> => {
  throw new Error("Nothing is opened here.");
};

const ledger: SourceDescription = {
  kind: "ledger",
  form: "a ledger (ledger://…)",
  accepts: (address) => address.startsWith("ledger:"),
  checkQuery: unreachable,
  namedTables: unreachable,
  open: unreachable,
  inspect: unreachable,
};

const connectors = openConnectors({
  sources: {
    descriptions: [...CONNECTORS.sources, ledger],
    changes: new Map(),
    addresses: new Map([
      ["main", "postgres://reader@localhost/cinema"],
      ["books", "ledger://books"],
    ]),
  },
  reading: { applicationName: "test", allowedSchemas: [], readTimeoutMs: 1, batchBytes: 1 },
  sinks: [],
  writing: {
    writerUrl: "",
    loaderUrl: undefined,
    applicationName: "test",
    lockTimeoutMs: 1,
    idleTimeoutMs: 1,
    statementTimeoutMs: 1,
  },
});
const open = (source_type: string, source_connection: string) => connectors.source({ source_type, source_connection });

it("a source is found by its type and its connection, and otherwise a sentence says what there is", async () => {
  await expect(open("postgres", "main")).resolves.toHaveProperty("examine");
  await expect(open("mysql", "main")).rejects.toMatchObject({
    code: "NOT_SUPPORTED",
    message: 'There is no source of type "mysql"; there are: postgres, ledger.',
  });
  await expect(open("postgres", "other")).rejects.toMatchObject({
    code: "SOURCE_CONNECTION_UNKNOWN",
    message: 'There is no source connection "other".',
  });
  await expect(open("postgres", "books")).rejects.toMatchObject({
    code: "SOURCE_CONNECTION_UNKNOWN",
    message: 'The source connection "books" is not of type postgres.',
  });
  await expect(open("ledger", "books")).rejects.toThrow("Nothing is opened here.");
});

it("a target whose kind no connector knows is refused, and never taken for a table", async () => {
  await expect(connectors.sink({ kind: "postgres" })).rejects.toMatchObject({ code: "INTERNAL" });
});
