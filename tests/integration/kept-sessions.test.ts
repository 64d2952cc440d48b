import { once } from "node:events";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { afterAll, beforeAll, expect, inject, it, vi } from "vitest";
import { KeptSessions } from "../../src/connectors/postgres/kept-sessions.ts";
import { questionSession } from "../../src/connectors/postgres/read-session.ts";
import { type Client, connectForData, resumeForData } from "../../src/postgres/connection.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

/** A session that the next run takes over is as a new one. */

let database: TestDatabase;
let kept: KeptSessions;
beforeAll(async () => {
  database = await createTestDatabase(inject("postgresUrl"));
  const options = { url: database.urls.loader ?? "", applicationName: "test", settings: { role: "vitrina_writer" } };
  kept = new KeptSessions(
    () => connectForData(options),
    (client) => resumeForData(client, options),
  );
});
afterAll(async () => {
  await kept.close();
  await database.drop();
});

async function stateOf(client: Client): Promise<unknown> {
  const { rows } = await client.query(`
    SELECT current_user::text AS role, current_setting('search_path') AS path, current_setting('work_mem') AS memory,
           (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
           (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()) AS tables,
           (SELECT count(*) FROM pg_cursors WHERE name = 'left') AS cursors`);
  return rows[0];
}

const pidOf = async (client: Client): Promise<unknown> =>
  (await client.query("SELECT pg_backend_pid() AS pid")).rows[0];

const never = new AbortController().signal;

it("has nothing of what was there, and is the same session", async () => {
  const { client, giveBack } = await kept.take(never);
  const [fresh, pid] = [await stateOf(client), await pidOf(client)];
  await client.query("CREATE TEMP TABLE left_over AS SELECT 1 AS one");
  await client.query("SET search_path = public; SET work_mem = '1MB'; RESET ROLE; SELECT pg_advisory_lock(7)");
  await client.query('DECLARE "left" CURSOR WITH HOLD FOR SELECT 1');
  expect(await stateOf(client)).not.toEqual(fresh);
  giveBack();
  const again = await kept.take(never);
  expect(await pidOf(again.client)).toEqual(pid);
  expect(await stateOf(again.client)).toEqual(fresh);
  again.giveBack();
});

it("is ended by the signal of whoever has it, and not by that of the one before", async () => {
  const [before, now] = [new AbortController(), new AbortController()];
  const first = await kept.take(before.signal);
  first.giveBack();
  const { client } = await kept.take(now.signal);
  expect(client).toBe(first.client);
  before.abort();
  await pidOf(client);
  now.abort();
  await expect(pidOf(client)).rejects.toThrow();
});

it("is replaced by a new one if somebody has ended it", async () => {
  const { client, giveBack } = await kept.take(never);
  const pid = await pidOf(client);
  giveBack();
  await database.query("SELECT pg_terminate_backend($1)", [Number((pid as { pid: string }).pid)]);
  await until("the session has ended", async () =>
    (await database.query("SELECT FROM pg_stat_activity WHERE pid = $1", [Number((pid as { pid: string }).pid)]))
      .length === 0
      ? true
      : undefined,
  );
  const other = await kept.take(never);
  expect(await pidOf(other.client)).not.toEqual(pid);
  other.giveBack();
});

it("is replaced by a new one if its server fell silent before it was empty", async ({ onTestFinished }) => {
  const proxy = await startTcpProxy(database.url);
  onTestFinished(() => proxy.close());
  const options = { url: proxy.through(database.urls.loader ?? ""), applicationName: "test" };
  const sessions = new KeptSessions(
    () => connectForData(options),
    (client) => resumeForData(client, options),
  );
  const silence = proxy.on({ direction: "to server", bytes: "DISCARD TEMP", nth: 1, after: [] }, "silence");
  const { client, giveBack } = await sessions.take(never);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  giveBack();
  await until("it is to be emptied", () => silence.acted);
  const taking = sessions.take(never);
  await vi.advanceTimersByTimeAsync(15_000);
  const other = await taking;
  expect(other.client).not.toBe(client);
  await other.client.end();
  await sessions.close();
});

it("a session is ended although its server does not take its leave", async ({ onTestFinished }) => {
  const url = new URL(database.urls.loader ?? "");
  const address = { port: Number(url.port), host: url.hostname };
  const sockets: Socket[] = [];
  // Forwards what is said, and not that one side has hung up.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = dial({ ...address, allowHalfOpen: true });
    client.on("data", (piece) => upstream.write(piece));
    upstream.on("data", (piece) => client.write(piece));
    for (const socket of [client, upstream]) socket.on("error", () => undefined);
    sockets.push(client, upstream);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = await connectForData({ url: url.href, applicationName: "test" });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const ending = client.end();
  await vi.advanceTimersByTimeAsync(10_000);
  await ending;
});

it("a question is told that its session was closed meanwhile", async () => {
  const url = database.urls.reader;
  const session = questionSession({ url, applicationName: "asking", readTimeoutMs: 60_000 });
  const answer = session.ask((client) => client.query("SELECT pg_sleep(60)")).catch((error: unknown) => error);
  await until("it is asked", async () =>
    (await database.query("SELECT FROM pg_stat_activity WHERE application_name = 'asking' AND wait_event = 'PgSleep'"))
      .length === 1
      ? true
      : undefined,
  );
  await session.close();
  expect(await answer).toMatchObject({ code: "DATABASE_UNAVAILABLE" });
});
