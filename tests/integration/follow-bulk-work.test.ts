import { randomUUID } from "node:crypto";
import { describe, expect, inject, it, type TestContext } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { startRunner } from "../../src/main/runner.ts";
import { recordChangesOf } from "../support/chaos-follow.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { CINEMA, FILM_MART, reasonOf, untilEqual } from "../support/followed-marts.ts";
import { recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** The owner of a source switches the triggers off for bulk work, for as long as that takes, and knows of no pipeline. */

/** As docs/guides/follow.md has it, which runs this by \gexec. */
const SWITCH_OFF = `DO $$ DECLARE statement text; BEGIN
  FOR statement IN SELECT format('ALTER TABLE content.film DISABLE TRIGGER %I', tgname) FROM pg_trigger
    WHERE tgrelid = 'content.film'::regclass AND tgname ~ '^vitrina_(record|emptied)_'
  LOOP EXECUTE statement; END LOOP; END $$`;

/** A mart that follows films, and a runner that does not own its source. */
async function openFilms(onTestFinished: TestContext["onTestFinished"]) {
  const database = await createTestDatabase(inject("postgresUrl"));
  onTestFinished(() => database.drop());
  await database.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    ALTER DEFAULT PRIVILEGES IN SCHEMA content GRANT SELECT ON TABLES TO vitrina_reader; ${CINEMA}`);
  const store = database.openStore();
  const name = `p_${randomUUID().slice(0, 8)}`;
  const config = { ...FILM_MART, name, target_table: `analytics.${name}`, create_target: true };
  const films: Pipeline = await store.pipelines.create(
    newPipelineSchema.parse({ ...config, follow: { check_every_seconds: 0.1 } }),
    "test",
  );
  await recordChangesOf(database, films);
  const runner = await startRunner(database.settings, database.urls, recordingLog());
  onTestFinished(() => runner.stop());
  const untilIs = (status: string) =>
    until(`it is ${status}`, async () => (await store.pipelines.get(films.id)).status === status);
  await until("it follows", async () => (await store.follow.get(films.id)).position !== null);
  await untilIs("IDLE");
  return { database, films, untilIs, lastRun: async () => (await store.runs.list(films.id, { limit: 1 })).items[0] };
}

/** So much later. */
const age = (database: TestDatabase): Promise<unknown> =>
  database.query(
    "UPDATE etl.etl_runs SET started_at = started_at - interval '1 hour', finished_at = finished_at - interval '1 hour'",
  );

it("a mart waits until its changes are recorded again, and then follows by itself", async ({ onTestFinished }) => {
  const { database, films, untilIs, lastRun } = await openFilms(onTestFinished);
  await database.query(SWITCH_OFF);
  await untilIs("FAILED");
  const refused = await lastRun();
  expect(refused).toMatchObject({ error_code: "CHANGES_NOT_RECORDED" });
  await database.query("UPDATE content.film SET title = 'in bulk'");
  // Asked again and again: as long as nothing is recorded, no run begins.
  await age(database);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect((await lastRun())?.id).toBe(refused?.id);

  await recordChangesOf(database, films);
  await untilEqual(database, films);
  await untilIs("IDLE");
  const run = await lastRun();
  expect(run).toMatchObject({ status: "SUCCESS", trigger: "change" });
  expect(run && reasonOf(run)).toMatch(/The trigger on content\.film was switched off or on, or recreated\./);
});

describe("a mart whose source cannot be read for a while", () => {
  const AWAY: [what: string, away: string, back: string, code: string][] = [
    [
      "because a table was dropped and made again",
      "CREATE TABLE public.kept AS TABLE content.film; DROP TABLE content.film",
      "CREATE TABLE content.film AS TABLE public.kept; ALTER TABLE content.film ADD PRIMARY KEY (id)",
      "SOURCE_QUERY_FAILED",
    ],
    [
      "because a column was away",
      "ALTER TABLE content.film RENAME title TO heading",
      "ALTER TABLE content.film DROP heading, ADD title text DEFAULT 'another'",
      "SOURCE_QUERY_FAILED",
    ],
    [
      "because its schema had another name",
      "ALTER SCHEMA content RENAME TO gone",
      "ALTER SCHEMA gone RENAME TO content; UPDATE content.film SET title = 'again'",
      "SOURCE_QUERY_FAILED",
    ],
    [
      "because the rights on a table were missing",
      "CREATE TABLE public.kept AS TABLE content.film; DROP TABLE content.film; CREATE TABLE content.film AS TABLE public.kept; REVOKE SELECT ON content.film FROM vitrina_reader",
      "GRANT SELECT ON content.film TO vitrina_reader; UPDATE content.film SET title = 'again'",
      "PERMISSION_DENIED",
    ],
  ];
  describe.each(AWAY)("%s", (_, away, back, code) => {
    it("follows by itself when it can be read again", async ({ onTestFinished }) => {
      const { database, films, untilIs, lastRun } = await openFilms(onTestFinished);
      await database.query(away);
      await untilIs("FAILED");
      const failed = await lastRun();
      expect(failed).toMatchObject({ error_code: code });

      await database.query(back);
      await recordChangesOf(database, films);
      await age(database);
      await untilEqual(database, films);
      await untilIs("IDLE");
      expect(await lastRun()).toMatchObject({ status: "SUCCESS", trigger: "change" });
    });
  });

  it("is not read again and again while a table is gone, or is not recorded", async ({ onTestFinished }) => {
    const { database, films, untilIs, lastRun } = await openFilms(onTestFinished);
    const quiet = async (): Promise<void> => {
      const failed = await lastRun();
      await age(database);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      expect((await lastRun())?.id).toBe(failed?.id);
    };
    await database.query("CREATE TABLE public.kept AS TABLE content.film; DROP TABLE content.film");
    await untilIs("FAILED");
    await quiet();
    await database.query("UPDATE content.genre SET name = 'other'");
    await quiet();
    await database.query("CREATE TABLE content.film AS TABLE public.kept");
    await quiet();
    await recordChangesOf(database, films);
    await untilEqual(database, films);
  });
});
