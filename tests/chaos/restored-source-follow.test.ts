import { execFileSync } from "node:child_process";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { installOwnChanges } from "../../src/connectors/postgres/changes/install-own.ts";
import { readQueryFacts } from "../../src/connectors/postgres/changes/query-facts.ts";
import type { FollowPosition } from "../../src/domain/follow.ts";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import { planFollow } from "../../src/sql-analysis/plan-follow.ts";
import { type Chaos, openChaos } from "../support/chaos.ts";
import { lastRunOf, untilStatus } from "../support/chaos-follow.ts";
import { LONG } from "../support/long.ts";
import { until } from "../support/until.ts";
import type { VitrinaProcess } from "../support/vitrina-process.ts";

/**
 * A source that is set back while no runner looks, and goes on with transactions of its own until it is beyond the position of
 * the mart. Nothing changes afterwards: the watcher must see that the changes since the position are not all there are.
 */

const QUERY = "SELECT id, title FROM content.film";
const SETTINGS = { fsync: "off", max_connections: "40", shared_buffers: "16MB" };

let folder: string;
let server: EmbeddedPostgres;
let chaos: Chaos;
let films: Pipeline;
const running: EmbeddedPostgres[] = [];

const dirOf = (name: string): string => join(folder, name);
async function start(name: string, port?: number): Promise<EmbeddedPostgres> {
  const started = await startEmbeddedPostgres({
    dataDir: dirOf(name),
    serverSettings: SETTINGS,
    ...(port && { port }),
  });
  running.push(started);
  return started;
}
const copy = (from: string, to: string): void => {
  execFileSync("rm", ["-rf", dirOf(to)]);
  execFileSync("cp", ["-a", dirOf(from), dirOf(to)]);
};

/** The database of the source; any other one is for its administrator. */
function urlOf({ url }: EmbeddedPostgres, database = "shop"): URL {
  const named = new URL(url);
  named.pathname = `/${database}`;
  return named;
}

async function ask(to: EmbeddedPostgres, text: string, database?: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: urlOf(to, database).href });
  await client.connect();
  try {
    const found = await client.query(text);
    return Array.isArray(found) ? found.at(-1).rows : found.rows;
  } finally {
    await client.end();
  }
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-restored-"));
  server = await start("shop");
  await ask(server, "CREATE DATABASE shop", "postgres");
  await ask(
    server,
    `CREATE SCHEMA content; CREATE TABLE content.film (id bigint PRIMARY KEY, title text);
     INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 20) n;
     CREATE ROLE vitrina_reader LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA content TO vitrina_reader;
     GRANT SELECT ON content.film TO vitrina_reader`,
  );
  const client = new pg.Client({ connectionString: urlOf(server).href });
  await client.connect();
  const plan = await planFollow(await readQueryFacts(client, QUERY), ["id"], {});
  await client.end();
  await installOwnChanges(urlOf(server).href, "vitrina_reader", plan);
  chaos = await openChaos("elsewhere");
  films = await chaos.create({
    name: "films",
    source_query: QUERY,
    target_table: "analytics.films",
    target_key: ["id"],
    mode: "follow",
    create_target: true,
    follow: { check_every_seconds: 0.1 },
  });
});
afterEach(async () => {
  await chaos?.close();
  await Promise.all(running.splice(0).map((one) => one.stop().catch(() => undefined)));
  await rm(folder, { recursive: true, force: true });
});

function runner(of: EmbeddedPostgres): VitrinaProcess {
  const url = urlOf(of);
  [url.username, url.password] = ["vitrina_reader", "reader"];
  return chaos.runner(undefined, { READER_DATABASE_URL: url.href });
}

const textOf = (rows: readonly Record<string, unknown>[]): string =>
  rows.map(({ id, title }) => `${id} ${title}`).join(", ");
async function isEqual(): Promise<boolean> {
  const mart = await chaos.target.query("SELECT id, title FROM analytics.films ORDER BY id");
  return textOf(mart) === textOf(await ask(server, `${QUERY} ORDER BY id`));
}

async function untilFollowed(change: string): Promise<void> {
  const following = runner(server);
  await until("it follows", async () => (await chaos.store.follow.get(films.id)).position !== null);
  await ask(server, change);
  await until("the change is followed", isEqual);
  await untilStatus(chaos, films, "IDLE");
  await following.stop();
}

/** By a run that finds no change. */
async function untilMoved(isThere: (position: FollowPosition) => boolean): Promise<void> {
  await chaos.store.requests.run(films.id, "api");
  const following = runner(server);
  await until("the position has moved", async () => {
    const { position } = await chaos.store.follow.get(films.id);
    return position !== null && isThere(position);
  });
  await untilStatus(chaos, films, "IDLE");
  await following.stop();
}

/** Proves that the source is behind the mart, although its transactions are not; and that nothing it recorded looks new. */
async function goBeyondPosition(): Promise<void> {
  const { position } = await chaos.store.follow.get(films.id);
  const snapshot = position?.snapshot;
  await ask(server, "UPDATE content.film SET title = 'of another history' WHERE id = 9");
  await ask(server, MANY);
  await ask(server, MANY);
  const [row] = await ask(
    server,
    `SELECT pg_snapshot_xmin(pg_current_snapshot()) > pg_snapshot_xmax('${snapshot}'::pg_snapshot) AS beyond,
            (SELECT count(*)::int FROM vitrina.changes
              WHERE NOT pg_visible_in_snapshot(xid, '${snapshot}'::pg_snapshot)) AS new`,
  );
  expect(row).toEqual({ beyond: true, new: 0 });
  expect(await isEqual()).toBe(false);
}

async function comparesEverything(reason: RegExp): Promise<void> {
  runner(server);
  await until("the mart is equal to its query", isEqual);
  await untilStatus(chaos, films, "IDLE");
  const notes = (await lastRunOf(chaos, films)).notes.join(" ");
  expect(notes).toMatch(reason);
  await ask(server, "UPDATE content.film SET title = 'followed' WHERE id = 3");
  await until("it goes on", isEqual);
}

/** As many transactions as the other history makes must fit in between. */
const MANY = "DO $$ BEGIN FOR n IN 1..50 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";
const LOST = "UPDATE content.film SET title = 'lost' WHERE id = 5; DELETE FROM content.film WHERE id = 6";

/** A copy of the disk as it is. */
async function backUp(): Promise<void> {
  await server.stop();
  copy("shop", "backup");
  server = await start("shop");
}

async function restart(meanwhile?: () => void): Promise<void> {
  const { port } = server;
  await server.stop();
  meanwhile?.();
  server = await start("shop", port);
}

const restore = (): Promise<void> => restart(() => copy("backup", "shop"));

it("an older copy of the disk is compared as a whole: a change that was seen is not there", async () => {
  await untilFollowed("UPDATE content.film SET title = 'before' WHERE id = 4");
  await backUp();
  await ask(server, MANY);
  await untilFollowed(LOST);
  await restore();
  await goBeyondPosition();
  await comparesEverything(/The change table lacks a change that was there before\./);
});

it("so is one that lacks no change that the mart follows: only where its WAL ended tells", async () => {
  await untilFollowed("UPDATE content.film SET title = 'before' WHERE id = 4");
  await backUp();
  const { position: before } = await chaos.store.follow.get(films.id);
  await ask(server, MANY);
  await untilMoved(({ snapshot }) => snapshot !== before?.snapshot);
  const { position } = await chaos.store.follow.get(films.id);
  expect(position?.lastChange).toEqual(before?.lastChange);
  await restore();
  await goBeyondPosition();
  await comparesEverything(/The source was started from an earlier state/);
});

it("a source that is only started again is followed on, unless nobody looks for so long that it cannot be told any more", async () => {
  const isOfStart = (from: FollowPosition | null) => async () => {
    const { position } = await chaos.store.follow.get(films.id);
    return position !== null && position.fingerprint["start"] !== from?.fingerprint["start"];
  };
  await untilFollowed("UPDATE content.film SET title = 'before' WHERE id = 4");
  const { position: first, lastCompareAt } = await chaos.store.follow.get(films.id);
  await ask(server, "UPDATE content.film SET title = 'not followed yet' WHERE id = 8");
  await restart();
  let following = runner(server);
  await until("the position belongs to the new start", isOfStart(first));
  await until("the change is followed", isEqual);
  // The session of somebody else dies, and with it all others: the server recovers without being started again.
  await untilStatus(chaos, films, "IDLE");
  const { position: second } = await chaos.store.follow.get(films.id);
  // A commit takes all WAL before it to the disk. What a crash takes may have been in the mart, which would be compared.
  await ask(server, "SELECT pg_logical_emit_message(true, 'flush', '')");
  const [session] = await ask(
    server,
    "SELECT pg_sleep(1), pg_backend_pid() AS pid, pg_postmaster_start_time()::text AS started",
  );
  const held = new pg.Client({ connectionString: urlOf(server).href });
  held.on("error", () => undefined);
  await held.connect();
  process.kill((await held.query("SELECT pg_backend_pid() AS pid")).rows[0].pid, "SIGKILL");
  await until("the position belongs to the time after the crash", isOfStart(second));
  await until("it can be asked again", () =>
    ask(server, "SELECT").then(
      () => true,
      () => false,
    ),
  );
  expect(await ask(server, "SELECT pg_postmaster_start_time()::text AS started")).toEqual([
    { started: session?.["started"] },
  ]);
  await untilStatus(chaos, films, "IDLE");
  expect((await chaos.store.follow.get(films.id)).lastCompareAt).toEqual(lastCompareAt);

  await following.stop();
  await restart();
  await ask(server, MANY);
  await ask(server, "CHECKPOINT");
  following = runner(server);
  await until("it compares everything", async () =>
    (await lastRunOf(chaos, films)).notes.join().includes("has run for too long to tell"),
  );
  await untilStatus(chaos, films, "IDLE");
});

it.runIf(LONG)(
  "so is one in which is remembered what had been forgotten when the mart was last up to date",
  async () => {
    await untilFollowed("UPDATE content.film SET title = 'before' WHERE id = 4");
    await backUp();
    await ask(server, MANY);
    await untilFollowed(LOST);
    // Both parts are emptied, and a run without any change moves the position.
    await ask(server, "UPDATE vitrina.state SET max_age = '-1 hour'");
    for (const answer of ["took turns", "forgot at the limit"]) {
      expect(await ask(server, "SELECT vitrina.forget() AS answer")).toEqual([{ answer }]);
    }
    await untilMoved(({ lastChange, forgotten }) => lastChange === null && Object.keys(forgotten).length > 0);
    await restore();
    await goBeyondPosition();
    await comparesEverything(/The source went back to an earlier state/);
  },
);

it("a database that is replaced by a copy of the same name is compared as a whole, though all its tables are the same", async () => {
  await untilFollowed("UPDATE content.film SET title = 'before' WHERE id = 4");
  const { position: before } = await chaos.store.follow.get(films.id);
  await ask(server, "CREATE DATABASE backup TEMPLATE shop", "postgres");
  // Recorded there before the mart is up to date here: it looks as if it had been followed.
  await ask(server, "UPDATE content.film SET title = 'of another history' WHERE id = 9", "backup");
  await untilMoved(({ snapshot }) => snapshot !== before?.snapshot);
  const { position } = await chaos.store.follow.get(films.id);
  await ask(server, "DROP DATABASE shop WITH (FORCE)", "postgres");
  await ask(server, "ALTER DATABASE backup RENAME TO shop", "postgres");
  expect(position?.fingerprint["table content.film"]).toBe(
    (await ask(server, "SELECT 'content.film'::regclass::oid::text AS oid"))[0]?.["oid"],
  );
  expect(await isEqual()).toBe(false);
  await comparesEverything(/The source is another server or database than before\./);
});

it.runIf(LONG)(
  "a standby that takes the place of its primary, without its last changes, is compared as a whole",
  async () => {
    await untilFollowed("UPDATE content.film SET title = 'before' WHERE id = 4");
    await backUp();
    const cluster = join(dirOf("backup"), "postgres");
    await writeFile(join(cluster, "standby.signal"), "");
    await appendFile(join(cluster, "postgresql.auto.conf"), "primary_conninfo = ''\n");
    const standby = await start("backup");
    const { position: before } = await chaos.store.follow.get(films.id);
    expect(await ask(standby, "SELECT pg_is_in_recovery()::text AS standby")).toEqual([{ standby: "true" }]);
    await ask(server, MANY);
    // No change is lost that the position knows of: only the time line tells.
    await untilMoved(({ snapshot }) => snapshot !== before?.snapshot);
    await server.stop();
    server = standby;
    await ask(standby, "SELECT pg_promote()");
    await goBeyondPosition();
    await comparesEverything(/The source was restored, or a standby took its place\./);
  },
);
