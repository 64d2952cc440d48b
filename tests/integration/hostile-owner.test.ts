import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { newPipelineSchema } from "../../src/domain/pipeline.ts";
import { prepareDatabase } from "../../src/main/database.ts";
import { loadDemo } from "../../src/main/demo.ts";
import { startRunner } from "../../src/main/runner.ts";
import { createLog } from "../../src/observability/log.ts";
import { connect, connectForData, createPool } from "../../src/postgres/connection.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

/**
 * A plain role owns the database, and lets the superuser migrate it. Each function and each operator of the server has
 * a double in `public`, and the database searches `public` first: a single name that Vitrina leaves open springs a trap.
 */
let database: TestDatabase;
const owner = `owner_${randomBytes(4).toString("hex")}`;

const DOUBLES = `
  CREATE FUNCTION public.seize() RETURNS void LANGUAGE plpgsql AS $trap$
  BEGIN
    EXECUTE 'ALTER ROLE ${owner} SUPERUSER';
  END $trap$;
  -- A better match than the server's own format(text, VARIADIC "any"), also where pg_catalog is searched first.
  CREATE FUNCTION public.format(text, name) RETURNS text LANGUAGE plpgsql AS $trap$
  BEGIN
    PERFORM public.seize(); RETURN 'SELECT 1';
  END $trap$;
  DO $plant$
  DECLARE one record;
  BEGIN
    FOR one IN
      SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, format_type(p.prorettype, NULL) AS result, p.proretset
        FROM pg_proc p
       WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.proargmodes IS NULL
         AND NOT EXISTS (SELECT FROM unnest(p.proargtypes::oid[] || p.prorettype) t JOIN pg_type y ON y.oid = t
                          WHERE y.typtype = 'p' AND y.typname NOT IN ('void', 'record', 'anyarray', 'anyelement'))
    LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L', one.proname, one.arguments,
          CASE WHEN one.proretset THEN 'SETOF' ELSE '' END, one.result,
          CASE WHEN one.proretset OR one.result = 'void' THEN 'BEGIN PERFORM public.seize(); RETURN; END'
               ELSE 'BEGIN PERFORM public.seize(); RETURN NULL; END' END);
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
    FOR one IN
      SELECT o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r, o.oprresult::regtype AS result
        FROM pg_operator o WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft <> 0 AND o.oprname <> '=>'
    LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', md5(one::text), one.l, one.r,
          one.result, 'BEGIN PERFORM public.seize(); RETURN NULL; END');
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap_%s)', one.oprname,
          one.l, one.r, md5(one::text));
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END $plant$`;

const isSuperuser = async (): Promise<boolean> => {
  const [found] = await database.query(
    "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname::text OPERATOR(pg_catalog.=) $1",
    [owner],
  );
  return found?.["rolsuper"] as boolean;
};

function asOwner<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
  const url = new URL(database.url);
  url.username = owner;
  url.password = owner;
  return inSession(url.href, use);
}

async function inSession<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"), {
    empty: true,
    settings: { SOURCE_SCHEMAS: "content,ugc" },
  });
  const name = new URL(database.url).pathname.slice(1);
  await database.query(`CREATE ROLE ${owner} LOGIN PASSWORD '${owner}'`);
  await database.query(`ALTER DATABASE ${name} OWNER TO ${owner}`);
  await asOwner(async (client) => {
    await client.query(DOUBLES);
    await client.query(`ALTER DATABASE ${name} SET search_path = public, pg_catalog`);
  });
});
afterAll(async () => {
  await database.drop();
  await inSession(inject("postgresUrl"), (client) => client.query(`DROP ROLE ${owner}`));
});

describe("a hostile owner of the database", () => {
  it("has set traps that spring: a session of a superuser that leaves a name open is seized", async () => {
    const [planted] = await database.query(
      "SELECT pg_catalog.count(*)::text AS n FROM pg_catalog.pg_operator WHERE oprnamespace OPERATOR(pg_catalog.=) 'public'::regnamespace::oid",
    );
    expect(Number(planted?.["n"])).toBeGreaterThan(500);
    await inSession(database.url, (client) => client.query("SELECT 1 + 1"));
    expect(await isSuperuser()).toBe(true);
    await database.query(`ALTER ROLE ${owner} NOSUPERUSER`);
    await inSession(database.url, (client) => client.query("SET search_path = public; SELECT format('%I', 'x'::name)"));
    expect(await isSuperuser()).toBe(true);
    await database.query(`ALTER ROLE ${owner} NOSUPERUSER`);
  });

  it("a schema etl of his own, whose triggers would run as the superuser, is refused", async () => {
    await asOwner((client) => client.query("CREATE SCHEMA etl"));
    await expect(prepareDatabase(database.settings, database.url)).rejects.toMatchObject({
      code: "SCHEMA_NOT_TRUSTED",
      hint: expect.stringContaining(`Migrate as ${owner}`),
    });
    await asOwner((client) => client.query("DROP SCHEMA etl"));
  });

  it("gets nothing from the migrations, the roles, the demo and the runs of a superuser", async () => {
    expect((await prepareDatabase(database.settings, database.url)).applied.length).toBeGreaterThan(10);
    const store = database.openStore();
    expect(await loadDemo(database.settings, database.url, store.pipelines)).toBe("loaded");
    const runner = await startRunner(database.settings, database.urls, createLog({ level: "silent" }));
    try {
      const { id } = await store.pipelines.create(
        newPipelineSchema.parse({
          name: "genres",
          source_query: "SELECT id, name, modified FROM content.genre",
          target_table: "analytics.genres",
          target_key: ["id"],
          create_target: true,
          mode: "incremental",
          incremental_key: "modified",
          incremental_id_key: "id",
        }),
        "test",
      );
      await store.requests.run(id, "api");
      await until("the run is over", async () => (await store.pipelines.get(id)).status === "IDLE");
      const [run] = (await store.runs.list(id, { limit: 1 })).items;
      expect(run).toMatchObject({ status: "SUCCESS", data_path: "push-down", rows_written: 26 });
    } finally {
      await runner.stop();
    }
    expect(await isSuperuser()).toBe(false);
  });

  it.each([
    ["of a program", "connect"],
    ["of the data path", "connectForData"],
    ["of the pool", "createPool"],
  ] as const)("a session %s finds only the server's own names, whatever database, role and URL say", async (_, way) => {
    const url = `${database.url}?options=${encodeURIComponent("-c search_path=public,pg_catalog -c lock_timeout=1ms")}`;
    const options = { url, applicationName: "vitrina test", settings: { lock_timeout: "7s" } };
    const session =
      way === "createPool" ? createPool({ ...options, max: 1 }) : await { connect, connectForData }[way](options);
    try {
      const { rows } = await session.query(
        "SELECT current_setting('search_path') AS path, current_setting('lock_timeout') AS timeout",
      );
      expect(rows).toEqual([{ path: "pg_catalog, pg_temp", timeout: "7s" }]);
    } finally {
      await session.end();
    }
  });
});
