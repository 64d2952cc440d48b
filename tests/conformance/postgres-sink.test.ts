import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, inject } from "vitest";
import { openPostgresSink } from "../../src/connectors/postgres/sink.ts";
import { formatTarget } from "../../src/domain/target.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { describeSink } from "./sink-contract.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
});
afterAll(() => database.drop());

describeSink("postgres", () => ({
  sink: openPostgresSink({
    url: database.urls.writer,
    loaderUrl: undefined,
    applicationName: "vitrina test",
    statementTimeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    comparisonTimeoutMs: 20_000,
  }),
  newTarget: () => ({ kind: "postgres", schema: "analytics", table: `t_${randomUUID().slice(0, 8)}` }),
  async titles(target) {
    const label = formatTarget(target);
    const [found] = await database.query("SELECT to_regclass($1) IS NOT NULL AS exists", [label]);
    if (found?.["exists"] !== true) return undefined;
    const rows = await database.query(`SELECT id::text, title FROM ${label} ORDER BY id`);
    return new Map(rows.map(({ id, title }) => [id as string, title as string | null]));
  },
  async columns(target) {
    const rows = await database.query(
      'SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 ORDER BY attname COLLATE "C"',
      [formatTarget(target)],
    );
    return rows.map(({ attname }) => attname as string);
  },
}));
