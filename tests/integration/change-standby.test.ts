import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changesScript } from "../../src/connectors/postgres/changes/script.ts";
import { watchChanges } from "../../src/connectors/postgres/changes/watch.ts";
import { FILM, FILMS, type FollowedQuery, followIn, sourceConfig } from "../support/followed-source.ts";
import { openServerCopies, type ServerCopies } from "../support/server-copies.ts";
import { until } from "../support/until.ts";

/** A source that is a standby, and servers that have the same past and another present. */

let copies: ServerCopies;
let followed: Record<"primary" | "standby" | "clone", FollowedQuery>;
const close: (() => Promise<void>)[] = [];
beforeAll(async () => {
  copies = await openServerCopies(`CREATE SCHEMA content; CREATE TABLE content.film (id bigint PRIMARY KEY, title text);
    INSERT INTO content.film SELECT n, 'film ' || n FROM generate_series(1, 9) n; CREATE ROLE vitrina_reader LOGIN;
    ${changesScript({ tables: [FILM], reader: "vitrina_reader" })}`);
  const follow = async (url: string): Promise<FollowedQuery> => {
    const query = await followIn(sourceConfig(url), FILMS);
    close.push(() => query.follower.close());
    return query;
  };
  const { primary, standby, clone } = copies;
  await copies.caughtUp();
  followed = {
    primary: await follow(primary.urls.reader),
    standby: await follow(standby.urls.reader),
    clone: await follow(clone.urls.reader),
  };
});
afterAll(async () => {
  for (const one of close.reverse()) await one();
  await copies?.close();
});

describe("a standby", () => {
  it("tells of a transaction that was running when the position was taken", async () => {
    const { primary, standby } = copies;
    const slow = new pg.Client({ connectionString: primary.url });
    await slow.connect();
    close.push(() => slow.end());
    await slow.query("BEGIN; UPDATE content.film SET title = 'slow' WHERE id = 1");
    await primary.query("UPDATE content.film SET title = 'quick' WHERE id = 2");
    await copies.caughtUp();
    const start = await followed.standby.start();
    await slow.query("COMMIT");
    await copies.caughtUp();
    expect(await standby.query("SELECT pg_is_in_recovery()::text AS standby")).toEqual([{ standby: "true" }]);
    // What was committed meanwhile may be told again.
    expect(await followed.standby.since(start)).toMatchObject({ kind: "keys", keys: expect.arrayContaining([["1"]]) });
    const next = await followed.standby.start();
    expect(await followed.standby.since(next)).toEqual({ kind: "keys", changes: 0, keys: [] });
    const watch = watchChanges(sourceConfig(standby.urls.reader));
    close.push(() => watch.close());
    const watched = { pipelineId: "p", position: next, tables: ["content.film"] };
    expect(await watch.changedSince([watched])).toEqual([]);
    await watch.forgetSeen([watched]);
    await primary.query("UPDATE content.film SET title = 'later' WHERE id = 3");
    await copies.caughtUp();
    expect(await watch.changedSince([watched])).toEqual(["p"]);
    expect(await followed.standby.since(next)).toEqual({ kind: "keys", changes: 1, keys: [["3"]] });
    const rows = await followed.standby.inRound(async (round) => (await (await round.open([["3"]])).read(5)).rows());
    expect(rows).toEqual([["3", "later"]]);
  });

  it("that took the place of its primary makes the mart compare everything, and so does a copy of the disk", async () => {
    const start = await followed.primary.start();
    await copies.clone.query("UPDATE content.film SET title = 'elsewhere'");
    expect(await followed.clone.since(start)).toMatchObject({ kind: "everything" });
    await copies.caughtUp();
    const before = await followed.standby.start();
    await copies.standby.query("SELECT pg_promote()");
    await until("it is no standby any more", async () => {
      const [row] = await copies.standby.query("SELECT pg_is_in_recovery()::text AS standby");
      return row?.["standby"] === "false";
    });
    for (const position of [start, before]) {
      expect(await followed.standby.since(position)).toEqual({
        kind: "everything",
        reason: "The source was restored, or a standby took its place.",
      });
    }
  });
});
