import { expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Chaos, faulted, openChaos } from "../support/chaos.ts";
import {
  change,
  createFollowedSource,
  createRecorded,
  lastRunOf,
  recordChangesOf,
  untilFollowing,
  untilStatus,
} from "../support/chaos-follow.ts";
import { untilEqual, violations } from "../support/followed-marts.ts";
import { LONG } from "../support/long.ts";
import { until } from "../support/until.ts";

/**
 * What others do to source and target while a runner is in the middle of a round: it waits for the round, or the round is
 * done again, or the pipeline says what a person must do.
 */

interface Interference {
  readonly what: string;
  /** Where the runner stands meanwhile. */
  readonly point: "keys_found:1" | "chunk_committed:1";
  readonly does: string;
  /** It gets no further until the round is over. */
  readonly waits?: true;
  readonly refused?: { readonly code: string; readonly remedy: string };
  /** Only a sweep can tell. */
  readonly needsSweep?: true;
  /** Also outside `npm run test:chaos`. */
  readonly isTypical?: true;
}

const VIEW = `
  SELECT f.id, f.title, (SELECT string_agg(g.name, ', ' ORDER BY g.name)
                           FROM content.film_genre fg JOIN content.genre g ON g.id = fg.genre_id
                          WHERE fg.film_id = f.id) AS genres
    FROM content.film f`;
const UNSEEN = "UPDATE content.genre SET name = 'unseen' WHERE id = 7";

const CASES: readonly Interference[] = [
  {
    what: "a column is renamed",
    point: "keys_found:1",
    does: "ALTER TABLE content.genre RENAME name TO label; UPDATE content.genre SET label = 'other' WHERE id = 7",
    waits: true,
    // The view goes on with the column under its new name; what records the changes does not.
    refused: { code: "CHANGES_NOT_RECORDED", remedy: "ALTER TABLE content.genre RENAME label TO name" },
    isTypical: true,
  },
  {
    what: "a column is dropped, with the view that shows it",
    point: "keys_found:1",
    does: "DROP VIEW content.shown; ALTER TABLE content.genre DROP name",
    waits: true,
    refused: {
      code: "SOURCE_QUERY_FAILED",
      remedy: `ALTER TABLE content.genre ADD name text DEFAULT 'back'; CREATE VIEW content.shown AS ${VIEW}`,
    },
  },
  {
    what: "a table is truncated",
    point: "keys_found:1",
    does: "TRUNCATE content.film_genre",
    waits: true,
  },
  {
    what: "a view is redefined",
    point: "keys_found:1",
    does: `CREATE OR REPLACE VIEW content.shown AS ${VIEW.replace("f.title,", "upper(f.title) AS title,")} WHERE f.id > 5`,
    waits: true,
    isTypical: true,
  },
  {
    what: "a trigger is off for a while",
    point: "keys_found:1",
    does: `BEGIN; ALTER TABLE content.genre DISABLE TRIGGER USER; ${UNSEEN};
      DO $$ DECLARE t text; BEGIN
        FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'content.genre'::regclass AND NOT tgisinternal
        LOOP EXECUTE format('ALTER TABLE content.genre ENABLE ALWAYS TRIGGER %I', t); END LOOP; END $$; COMMIT`,
  },
  {
    what: "the change table is dropped",
    point: "keys_found:1",
    does: `DROP SCHEMA vitrina CASCADE; ${UNSEEN}`,
    waits: true,
    refused: { code: "CHANGES_NOT_RECORDED", remedy: "SELECT" },
  },
  {
    what: "the session that reads the source is ended",
    point: "keys_found:1",
    does: `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
            WHERE datname = current_database() AND usename = 'vitrina_reader' AND state = 'idle in transaction'`,
  },
  {
    what: "the target is truncated",
    point: "chunk_committed:1",
    does: "TRUNCATE analytics.films",
    isTypical: true,
  },
  {
    what: "the target is dropped, and made again by somebody",
    point: "chunk_committed:1",
    does: `DROP TABLE analytics.films; CREATE TABLE analytics.films (id bigint PRIMARY KEY, title text, genres text);
      GRANT SELECT, INSERT, UPDATE, DELETE ON analytics.films TO vitrina_writer`,
  },
  {
    what: "a row of the target is changed that was written already",
    point: "chunk_committed:1",
    does: "UPDATE analytics.films SET title = 'by a stranger'",
    needsSweep: true,
  },
];

const typical = CASES.filter(({ isTypical }) => LONG || isTypical).map((one) => [one.what, one] as const);
it.for(typical)("in the middle of a round %s", async ([, { point, does, waits, refused, needsSweep }], context) => {
  const chaos = await openChaos("stream");
  context.onTestFinished(() => chaos.close());
  await createFollowedSource(chaos);
  await chaos.query(`CREATE VIEW content.shown AS ${VIEW}`);
  const films = await createRecorded(chaos, "films", "SELECT id, title, genres FROM content.shown");
  await followFirst(chaos, films);

  await chaos.query(change("in a round"));
  const runner = chaos.runner(`${point}:park`);
  await faulted(runner, point, "park");
  const act = chaos.query(does);
  if (waits) await untilBlocked(chaos);
  else await act;
  runner.signal("SIGUSR2");
  await act;

  if (refused !== undefined) {
    await untilStatus(chaos, films, "FAILED");
    expect(await lastRunOf(chaos, films)).toMatchObject({ error_code: refused.code });
    await chaos.query(refused.remedy);
    await recordChangesOf(chaos.database, films);
    // If the repair took more than a minute, it may have started by itself.
    await chaos.store.requests.run(films.id, "api").catch(() => undefined);
  }
  if (needsSweep) {
    await untilStatus(chaos, films, "IDLE");
    expect(await violations(chaos, films)).not.toEqual([]);
    await chaos.query("UPDATE etl.etl_pipelines SET sweep_wanted_at = now()");
    await chaos.store.requests.run(films.id, "api");
  }
  await untilEqual(chaos, films);
  await untilStatus(chaos, films, "IDLE");
  expect(await lastRunOf(chaos, films)).toMatchObject({ status: "SUCCESS" });
  expect(await violations(chaos, films)).toEqual([]);
});

async function followFirst(chaos: Chaos, films: Pipeline): Promise<void> {
  const runner = chaos.runner();
  await untilFollowing(chaos, films);
  await runner.stop();
}

/** Proves that what somebody does waits for the round. */
async function untilBlocked({ query }: Chaos): Promise<void> {
  await until("it waits for the round", async () => {
    const blocked = await query(
      `SELECT FROM pg_stat_activity a WHERE a.datname = current_database()
          AND EXISTS (SELECT FROM unnest(pg_blocking_pids(a.pid)) AS b (pid) JOIN pg_stat_activity r ON r.pid = b.pid
                       WHERE r.usename = 'vitrina_reader')`,
    );
    return blocked.length > 0;
  });
}
