import { randomUUID } from "node:crypto";
import { expect, inject, it } from "vitest";
import { newPipelineSchema, type Pipeline } from "../../src/domain/pipeline.ts";
import { startRunner } from "../../src/main/runner.ts";
import { recordChangesOf } from "../support/chaos-follow.ts";
import { createTestDatabase } from "../support/database.ts";
import { CINEMA, FILM_MART, reasonOf, untilEqual } from "../support/followed-marts.ts";
import { recordingLog } from "../support/recording-log.ts";
import { until } from "../support/until.ts";

/** The owner of a source switches the triggers off for bulk work, for as long as that takes, and knows of no pipeline. */

/** As docs/guides/follow.md has it, which runs this by \gexec. */
const SWITCH_OFF = `DO $$ DECLARE statement text; BEGIN
  FOR statement IN SELECT format('ALTER TABLE content.film DISABLE TRIGGER %I', tgname) FROM pg_trigger
    WHERE tgrelid = 'content.film'::regclass AND tgname ~ '^vitrina_(record|emptied)_'
  LOOP EXECUTE statement; END LOOP; END $$`;

it("a mart waits until its changes are recorded again, and then follows by itself", async ({ onTestFinished }) => {
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
  // This one does not own the source.
  const runner = await startRunner(database.settings, database.urls, recordingLog());
  onTestFinished(() => runner.stop());
  const untilIs = (status: string) =>
    until(`it is ${status}`, async () => (await store.pipelines.get(films.id)).status === status);
  const lastRun = async () => (await store.runs.list(films.id, { limit: 1 })).items[0];
  await until("it follows", async () => (await store.follow.get(films.id)).position !== null);
  await untilIs("IDLE");

  await database.query(SWITCH_OFF);
  await untilIs("FAILED");
  const refused = await lastRun();
  expect(refused).toMatchObject({ error_code: "CHANGES_NOT_RECORDED" });
  await database.query("UPDATE content.film SET title = 'in bulk'");
  // So much later, and asked again and again: as long as nothing is recorded, no run begins.
  const aged =
    "UPDATE etl.etl_runs SET started_at = started_at - interval '1 hour', finished_at = finished_at - interval '1 hour'";
  await database.query(aged);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect((await lastRun())?.id).toBe(refused?.id);

  await recordChangesOf(database, films);
  await untilEqual(database, films);
  await untilIs("IDLE");
  const run = await lastRun();
  expect(run).toMatchObject({ status: "SUCCESS", trigger: "change" });
  expect(run && reasonOf(run)).toMatch(/The trigger on content\.film was switched off or on, or recreated\./);
});
