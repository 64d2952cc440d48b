import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliBench, openCliBench } from "../support/cli.ts";
import { until } from "../support/until.ts";

/** What people see of a mart that follows, from the plan to the row that has changed. */

let bench: CliBench;
beforeAll(async () => {
  bench = await openCliBench();
  await bench.startApi();
  await bench.database.query("CREATE TABLE content.tag (film_id bigint PRIMARY KEY, tag text)");
  await bench.database.query("GRANT SELECT ON content.tag TO vitrina_reader");
  await bench.create("tagged", {
    source_query: "SELECT f.id, f.title, t.tag FROM content.film f LEFT JOIN content.tag t ON t.film_id = f.id",
    mode: "follow",
  });
});
afterAll(() => bench?.stop());

describe("follow", () => {
  it("plan: says for each table how its keys are found; fails where something is refused", async () => {
    const shown = await bench.cli(["follow", "plan", "tagged"]);
    expect(shown.code, shown.stderr).toBe(0);
    expect(shown.stdout).toMatch(/^tagged follows 2 tables, by id\.$/m);
    expect(shown.stdout).toMatch(/^content\.tag \(film_id; missing: Changes of content\.tag are not recorded\.\)$/m);
    expect(shown.stdout).toContain("changed(content.tag)");
    await bench.create("latest", { source_query: "SELECT id, title FROM content.film ORDER BY id DESC LIMIT 3" });
    const refused = await bench.cli(["follow", "plan", "latest"]);
    expect(refused.code).toBe(1);
    expect(refused.stdout).toMatch(
      /^latest does not follow its source: its mode is full\. With mode follow it could not follow it\.$/m,
    );
    expect(refused.stdout).toMatch(/^ {2}refused at line 1, column \d+: .*LIMIT/m);
  });

  it("script: what the owner runs; with it the mart follows, and status shows how far", async () => {
    const { code, stdout } = await bench.cli(["follow", "script", "main"]);
    expect(code).toBe(0);
    await bench.database.query(stdout);
    expect((await bench.cli(["follow", "script", "main", "--diff"])).stdout).toBe(
      "-- The source records everything that its pipelines need.\n",
    );
    expect((await bench.cli(["follow", "script", "main", "--diff", "--remove"])).code).toBe(64);

    // Not before: a new pipeline that follows starts by itself.
    await bench.startRunner();
    expect((await bench.cli(["run", "tagged", "--wait"])).code).toBe(0);
    await bench.database.query("INSERT INTO content.tag VALUES (7, 'new')");
    await until("the mart has the tag", async () => {
      const [row] = await bench.database.query("SELECT tag FROM analytics.tagged WHERE id = 7");
      return row?.["tag"] === "new";
    });
    const status = await until("nothing waits", async () => {
      const one = await bench.json(["follow", "status", "tagged"]);
      return one.changes_waiting === 0 ? one : undefined;
    });
    expect(status).toMatchObject({
      following: true,
      lag_seconds: 0,
      repaired: 0,
      tables: ["content.film", "content.tag"],
    });
    const table = await bench.cli(["follow", "status"]);
    expect(table.stdout).toMatch(/^NAME +LAG +WAITING +LAST ROUND +WHOLE COMPARE +SWEEP +REPAIRED +POSITION$/m);
    expect(table.stdout).toMatch(/^tagged +0\.0 s +0 .* \d+:\d+$/m);
  });

  it("status: says of a pipeline that does nothing by itself why not", async () => {
    await bench.database.query("UPDATE etl.etl_pipelines SET enabled = false WHERE name = 'tagged'");
    expect((await bench.cli(["follow", "status"])).stderr).toMatch(/^tagged is disabled: no change starts a run\./m);
    await bench.database.query("UPDATE etl.etl_pipelines SET enabled = true WHERE name = 'tagged'");

    await bench.create("broken", {
      source_query: "SELECT f.id, 1 / f.id AS title FROM content.film f",
      mode: "follow",
      enabled: false,
    });
    await bench.database.query("UPDATE etl.etl_pipelines SET status = 'PAUSED' WHERE name = 'broken'");
    await bench.database.query("UPDATE etl.etl_pipelines SET enabled = true WHERE name = 'broken'");
    expect((await bench.cli(["follow", "status"])).stderr).toMatch(/^broken is PAUSED: no change starts a run\./m);
    await bench.database.query("UPDATE etl.etl_pipelines SET status = 'FAILED' WHERE name = 'broken'");
    expect((await bench.cli(["follow", "status"])).stderr).toMatch(/^broken is FAILED: it starts by itself only if /m);
    expect((await bench.cli(["delete", "broken", "--yes"])).code).toBe(0);
  });

  it("script: names a pipeline that is left out on standard error, and fails", async () => {
    await bench.database.query("CREATE TABLE content.passing (id bigint PRIMARY KEY, title text)");
    await bench.database.query("GRANT SELECT ON content.passing TO vitrina_reader");
    await bench.create("passing", { source_query: "SELECT id, title FROM content.passing", mode: "follow" });
    await bench.database.query("DROP TABLE content.passing");
    const { code, stdout, stderr } = await bench.cli(["follow", "script", "main"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Without passing: .*content\.passing/m);
    expect(stdout).toContain("content.tag");
    // A runner may just try to run it.
    await until("it is deleted", async () => (await bench.cli(["delete", "passing", "--yes"])).code === 0);
  });

  it("graph: what a mart is made from, and who reads a table", async () => {
    const { stdout } = await bench.cli(["graph", "tagged"]);
    expect(stdout).toMatch(/^analytics\.tagged +tagged +main:content\.film, main:content\.tag$/m);
    expect((await bench.cli(["graph", "content.tag"])).stdout).toMatch(/^main:content\.tag +analytics\.tagged$/m);
    expect((await bench.cli(["graph", "content.nothing"])).stderr).toMatch(/^No pipeline reads or makes/);
  });
});
