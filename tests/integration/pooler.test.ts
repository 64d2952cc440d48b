import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { freePort } from "../../src/embedded-postgres/free-port.ts";
import { connect } from "../../src/postgres/connection.ts";
import { takeSession } from "../../src/postgres/session.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { isRoot, NOBODY } from "../support/embedded-postgres-harness.ts";
import { until } from "../support/until.ts";

/** A real PgBouncer, of Debian's package or any other on the PATH. */
const whyNot = spawnSync("pgbouncer", ["--version"]).error === undefined ? undefined : "there is no pgbouncer here";
if (whyNot !== undefined) console.log(`The tests with PgBouncer were skipped: ${whyNot}.`);

let database: TestDatabase;
let folder: string;
const poolers: ChildProcess[] = [];

beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  folder = await mkdtemp(join(tmpdir(), "vitrina-pooler-"));
  await chmod(folder, 0o777);
});
afterAll(async () => {
  for (const pooler of poolers) {
    pooler.kill("SIGINT");
    if (pooler.exitCode === null) await once(pooler, "exit");
  }
  await database.drop();
  await rm(folder, { recursive: true });
});

/** Returns the administrator's URL by way of the pooler. */
async function startPooler(mode: string): Promise<string> {
  const server = new URL(database.url);
  const port = await freePort();
  const file = join(folder, `${mode}.ini`);
  const users = join(folder, "users.txt");
  await writeFile(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  await writeFile(
    file,
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = ${mode}
`,
  );
  poolers.push(spawn("pgbouncer", [file], { stdio: "ignore", ...(isRoot && NOBODY) }));
  server.port = String(port);
  await until("the pooler answers", async () =>
    fetch(`http://127.0.0.1:${port}`).then(
      () => true,
      (error: Error) => !/ECONNREFUSED/.test(String((error.cause as { code?: string } | undefined)?.code)),
    ),
  );
  return server.href;
}

describe.skipIf(whyNot !== undefined)("PgBouncer", () => {
  it("that keeps sessions is like no pooler: settings hold, although it passes no options on", async () => {
    const url = await startPooler("session");
    const settings = { lock_timeout: "7s", default_transaction_read_only: "on" };
    const clients = await Promise.all([1, 2, 3].map(() => connect({ url, applicationName: "vitrina test", settings })));
    try {
      for (const client of clients) {
        const { rows } = await client.query(
          `SELECT current_setting('search_path') AS path, current_setting('lock_timeout') AS timeout,
                  current_setting('default_transaction_read_only') AS read_only`,
        );
        expect(rows).toEqual([{ path: "pg_catalog, pg_temp", timeout: "7s", read_only: "on" }]);
      }
    } finally {
      await Promise.all(clients.map((client) => client.end()));
    }
  });

  it("that hands a session out for one transaction is refused, and other clients' sessions stay as they were", async () => {
    const url = await startPooler("transaction");
    await expect(connect({ url, applicationName: "vitrina test" })).rejects.toMatchObject({
      code: "POOLER_SHARES_SESSIONS",
      hint: expect.stringContaining("pool_mode = session"),
    });
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    const { rows } = await other.query("SHOW search_path");
    await other.end();
    expect(rows).toEqual([{ search_path: '"$user", public' }]);
  });
});

it("a session whose statements reach one backend now and another then is refused before it changes either", async () => {
  const connectionString = database.url;
  const backends = [new pg.Client({ connectionString }), new pg.Client({ connectionString })] as const;
  await Promise.all(backends.map((backend) => backend.connect()));
  let statements = 0;
  const inTurn = {
    processID: 1,
    query: (statement: pg.QueryConfig) => {
      statements += 1;
      return (statements % 2 === 0 ? backends[0] : backends[1]).query(statement);
    },
  };
  try {
    await expect(takeSession(inTurn as unknown as pg.Client, { connectionString })).rejects.toMatchObject({
      code: "POOLER_SHARES_SESSIONS",
    });
    expect(statements).toBeGreaterThan(2);
    for (const backend of backends) {
      expect((await backend.query("SHOW search_path")).rows).toEqual([{ search_path: '"$user", public' }]);
    }
  } finally {
    await Promise.all(backends.map((backend) => backend.end()));
  }
});
