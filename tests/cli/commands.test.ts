import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliBench, type CliResult, COMMAND, FILMS, openCliBench } from "../support/cli.ts";
import { until } from "../support/until.ts";

/** The commands against a real API and a real runner; in this process, but for what only a process of its own can show. */

let bench: CliBench;
beforeAll(async () => {
  bench = await openCliBench();
  await bench.startApi();
  await bench.startRunner();
  await bench.create("film", { description: "Every film." });
  await bench.create("other_mart", { enabled: false });
  expect((await bench.cli(["run", "film", "--wait"])).code).toBe(0);
});
afterAll(() => bench?.stop());

/** A table that a person reads: the titles first, nothing said beside it. */
function rowsOf({ code, stdout, stderr }: CliResult): string[][] {
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^\s*[A-Z][A-Z0-9/ ]+$/);
  return lines.slice(1).map((line) => line.trim().split(/ {2,}/));
}

describe("looking", () => {
  it("list: a table of all pipelines, and the API's page as JSON", async () => {
    expect(rowsOf(await bench.cli(["list"]))).toEqual([
      ["film", "IDLE", "full", "analytics.film", "Every film."],
      ["other_mart", "IDLE (disabled)", "full", "analytics.other_mart"],
    ]);
    const answer = await (await fetch(`${bench.url}/api/v1/pipelines?limit=200`)).json();
    expect(await bench.json(["list"])).toEqual(answer);
    expect((await bench.json(["list", "--name", "oth"])).items).toMatchObject([{ name: "other_mart" }]);
  });

  it("get: the whole pipeline, as YAML or as JSON", async () => {
    const { stdout } = await bench.cli(["get", "film"]);
    expect(stdout).toMatch(/^name: film$/m);
    expect(stdout).toMatch(/^source_query: SELECT id, title FROM content.film$/m);
    expect(await bench.json(["get", "film"])).toEqual(await (await fetch(`${bench.url}/api/v1/pipelines/film`)).json());
  });

  it("status: what pipelines do and how the last run ended, of one or of all", async () => {
    const rows = rowsOf(await bench.cli(["status"]));
    expect(rows.map((row) => row.slice(0, 4))).toEqual([
      ["film", "IDLE", "SUCCESS", "1,000"],
      ["other_mart", "IDLE (disabled)", "never"],
    ]);
    expect(rows[0]?.at(-1)).toMatch(/^\d+ (s|min) ago$/);
    expect(await bench.json(["status", "film"])).toMatchObject({ name: "film", last_run: { rows_read: FILMS } });
    expect((await bench.json(["status"])).items).toHaveLength(2);
  });

  it("runs: newest first, as many as asked for", async () => {
    expect(rowsOf(await bench.cli(["runs", "film"]))[0]?.slice(1, 3)).toEqual(["SUCCESS", "api"]);
    expect(await bench.json(["runs", "film", "--limit", "1"])).toMatchObject({ items: [{ rows_read: FILMS }] });
  });

  it("runs: of all pipelines, of a status, since a time", async () => {
    expect(rowsOf(await bench.cli(["runs", "--status", "SUCCESS", "--since", "1d"]))[0]?.[0]).toBe("film");
    expect((await bench.json(["runs", "--status", "FAILED"])).items).toEqual([]);
    expect((await bench.json(["runs", "film", "--since", "2999-01-01"])).items).toEqual([]);
    expect((await bench.cli(["runs", "--since", "yesterday"])).code).toBe(64);
  });

  it("audit: who changed what", async () => {
    const rows = rowsOf(await bench.cli(["audit", "film", "--action", "createPipeline"]));
    expect(rows.map((row) => row.slice(1))).toEqual([["local", "createPipeline", "film", "done"]]);
    expect((await bench.json(["audit", "--actor", "key:nobody"])).items).toEqual([]);
    expect((await bench.cli(["runs", "other_mart"])).stderr).toBe("It has never run.\n");
  });

  it("runners and tasks: who is there, and with what", async () => {
    expect(rowsOf(await bench.cli(["runners"]))[0]?.[2]).toBe("alive");
    expect((await bench.json(["runners"])).items).toMatchObject([{ alive: true }]);
    expect(await bench.json(["tasks"])).toEqual({ items: [] });
    expect(await bench.cli(["tasks"])).toMatchObject({ code: 0, stdout: "", stderr: expect.stringMatching(/\.\n$/) });
  });
});

describe("trying out", () => {
  it("preview: the first rows of a pipeline or of a query", async () => {
    const { stdout, stderr } = await bench.cli(["preview", "film", "--limit", "2"]);
    expect(stdout.split("\n")[0]).toMatch(/^id +title$/);
    expect(stdout.trimEnd().split("\n")).toHaveLength(3);
    expect(stderr).toBe("There are more rows.\n");
    const query = "SELECT id, NULL::text AS nothing FROM content.film WHERE id = 7";
    expect(await bench.json(["preview", "--query", query])).toMatchObject({ rows: [["7", null]], complete: true });
    expect((await bench.cli(["preview", "--query", query])).stdout).toMatch(/^7 +NULL$/m);
  });

  it("validate: a stored pipeline, and configurations in YAML and JSON", async () => {
    expect(await bench.cli(["validate", "film"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^film is valid/),
    });
    const good = await bench.write(
      "good.yaml",
      "name: good\nsource_query: |\n  SELECT id\n  FROM content.film\ntarget_table: analytics.good\ntarget_key: [id]\ncreate_target: true\n",
    );
    expect(await bench.json(["validate", "-f", good])).toMatchObject({ valid: true, problems: [] });
    const bad = { name: "bad", source_query: "SELECT id FROM content.no_such", target_table: "analytics.bad" };
    const file = await bench.write("bad.json", JSON.stringify({ pipelines: [bad, { ...bad, name: "worse" }] }));
    const { code, stdout } = await bench.cli(["validate", "-f", file]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^bad is not valid.*\n {2}error at \/\w+.*: .*\.\n {4}\S.*\.$/m);
    expect(stdout).toMatch(/^worse is not valid/m);
  });

  it("validate: a configuration that is no configuration names every field", async () => {
    const file = await bench.write("odd.yaml", "name: 1x\nbatch_size: 0\ntarget_table: analytics.x\n");
    const { code, stdout } = await bench.cli(["validate", "-f", file]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^1x is not valid\.\n/);
    expect(stdout).toMatch(/^ {2}error at \/name \(odd\.yaml:1\): .*\.$/m);
    expect(stdout).toMatch(/^ {2}error at \/batch_size \(odd\.yaml:2\): .*\.$/m);
    expect(stdout).toMatch(/^ {2}error at \/source_query .*: .*\.$/m);
  });
});

describe("configurations in files", () => {
  const config = (name: string, more: object = {}) => ({
    name,
    source_query: "SELECT id, title FROM content.film",
    target_table: `analytics.${name}`,
    target_key: ["id"],
    create_target: true,
    ...more,
  });

  it("apply: creates, changes, and says so; what the file does not name stays", async () => {
    const file = await bench.write("first.json", JSON.stringify(config("applied", { batch_size: 50 })));
    expect(await bench.cli(["apply", "-f", file])).toEqual({
      code: 0,
      stdout: "applied: created (version 1)\n",
      stderr: "",
    });
    expect((await bench.cli(["apply", "-f", file])).stdout).toBe("applied: unchanged (version 1)\n");
    const both = [config("applied", { description: "of films" }), config("applied_too")];
    const second = await bench.write("second.yaml", JSON.stringify({ pipelines: both }));
    expect((await bench.cli(["apply", "-f", second])).stdout).toBe(
      "applied: changed (version 2)\napplied_too: created (version 1)\n",
    );
    expect(await bench.json(["get", "applied"])).toMatchObject({ batch_size: 50, description: "of films" });
  });

  it("apply: all or nothing, each problem with its file, its line and its pipeline", async () => {
    const file = await bench.write(
      "partly.yaml",
      `- name: fine
  source_query: SELECT id FROM content.film
  target_table: analytics.fine
- name: refused
  batch_size: 0
  source_query: |
    SELECT id,
           no_such_column
    FROM content.film
  target_table: etl.etl_runs
---
name: other_refused
source_query: DELETE FROM content.film
target_table: analytics.other_refused
`,
    );
    const { code, stdout, stderr } = await bench.cli(["apply", "-f", file]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^vitrina: Nothing was applied: 4 problems\.\n/);
    expect(stderr).toMatch(/^ {2}partly\.yaml:5: refused \/batch_size: /m);
    expect(stderr).toMatch(/^ {2}partly\.yaml:8: refused \/source_query \(line 2, column 8\): .*no_such_column/m);
    expect(stderr).toMatch(/^ {2}partly\.yaml:10: refused \/target_table: /m);
    expect(stderr).toMatch(/^ {2}partly\.yaml:13: other_refused \/source_query .*SELECT/m);
    expect((await bench.cli(["get", "fine"])).code).toBe(1);
    // The same file is judged alike without being stored.
    const tried = await bench.cli(["validate", "-f", file]);
    expect(tried.code).toBe(1);
    expect(tried.stdout).toMatch(/error at \/batch_size \(partly\.yaml:5\): /);
    expect(tried.stdout).toMatch(/error at \/source_query, line 2, column 8 \(partly\.yaml:8\): /);
  });

  it("apply and validate: folders and several files", async () => {
    await mkdir(join(bench.folder, "marts", "more"), { recursive: true });
    const one = await bench.write("marts/one.yaml", JSON.stringify(config("from_folder_one")));
    await bench.write("marts/more/two.json", JSON.stringify([config("from_folder_two")]));
    await bench.write("marts/notes.txt", "not a configuration");
    expect(await bench.cli(["validate", "-f", "marts"])).toMatchObject({ code: 0 });
    expect((await bench.cli(["apply", "-f", "marts"])).stdout).toBe(
      "from_folder_two: created (version 1)\nfrom_folder_one: created (version 1)\n",
    );
    const again = await bench.cli(["apply", "-f", one, "marts/more/two.json"]);
    expect(again.stdout).toBe("from_folder_one: unchanged (version 1)\nfrom_folder_two: unchanged (version 1)\n");
  });

  it("apply: files that are empty or missing are named", async () => {
    const empty = await bench.write("empty.yaml", "");
    expect(await bench.cli(["apply", "-f", empty])).toMatchObject({ code: 1, stdout: "" });
    expect(await bench.cli(["apply", "-f", `${empty}.missing`])).toEqual({
      code: 1,
      stdout: "",
      stderr: `vitrina: There is no file ${empty}.missing.\n`,
    });
  });

  it("delete: says what goes and what stays, and without a terminal needs --yes", async () => {
    await bench.create("unwanted");
    const refused = await bench.cli(["delete", "unwanted"]);
    expect(refused).toMatchObject({ code: 64, stdout: "" });
    expect(refused.stderr).toMatch(
      /^vitrina: unwanted is deleted with .*keeps its data\.\n {2}Add --yes to do it\.\n$/,
    );
    expect(await bench.cli(["delete", "unwanted", "--yes"])).toMatchObject({ code: 0 });
    expect(await bench.cli(["delete", "unwanted", "--yes"])).toMatchObject({ code: 1 });
  });
});

describe("versions and state", () => {
  it("diff shows the lines of a query that differ, with what is around them", async () => {
    const lines = (condition: string) =>
      ["SELECT id,", "  title", "FROM content.film", "WHERE true", "  AND true", condition, "  AND 1 = 1"].join("\n");
    await bench.create("rewritten", { source_query: lines("  AND id > 0") });
    const body = JSON.stringify({ source_query: lines("  AND id > 5") });
    const init = { method: "PATCH", headers: { "content-type": "application/json" }, body };
    expect((await fetch(`${bench.url}/api/v1/pipelines/rewritten`, init)).status).toBe(200);
    expect((await bench.cli(["diff", "rewritten", "2"])).stdout.split("\n").slice(2)).toEqual([
      "@@ source_query @@",
      "…",
      " FROM content.film",
      " WHERE true",
      "   AND true",
      "-  AND id > 0",
      "+  AND id > 5",
      "   AND 1 = 1",
      "",
    ]);
  });

  it("versions, diff and restore go through what was configured before", async () => {
    await bench.create("changing");
    const body = JSON.stringify({ batch_size: 7 });
    const init = { method: "PATCH", headers: { "content-type": "application/json" }, body };
    expect((await fetch(`${bench.url}/api/v1/pipelines/changing`, init)).status).toBe(200);
    expect(rowsOf(await bench.cli(["versions", "changing"])).map((row) => row.slice(0, 1))).toEqual([["2"], ["1"]]);
    const { stdout } = await bench.cli(["diff", "changing", "2"]);
    expect(stdout).toBe("--- version 1\n+++ version 2\n@@ batch_size @@\n-100\n+7\n");
    const { code, stderr } = await bench.cli(["restore", "changing", "1"]);
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("restored as version 3") });
    expect(await bench.json(["get", "changing"])).toMatchObject({ batch_size: 100, config_version: 3 });
  });

  it("state: a change says what it means, and without a terminal needs --yes", async () => {
    expect(rowsOf(await bench.cli(["state", "film"]))[0]?.[0]).toBe("none");
    const refused = await bench.cli(["state", "film", "reset"]);
    expect(refused).toMatchObject({ code: 64, stdout: "" });
    expect(refused.stderr).toMatch(/^vitrina: film forgets its position.*\n {2}Add --yes to do it\.\n$/);
    expect(await bench.json(["state", "film", "reset", "--yes"])).toMatchObject({ last_processed_value: null });
    await bench.create("growing", { mode: "incremental", incremental_key: "id" });
    const set = await bench.json(["state", "growing", "set", "900", "--yes"]);
    expect(set).toMatchObject({ last_processed_value: "900" });
    expect((await bench.cli(["state", "film", "set", "--yes"])).code).toBe(64);
  });
});

describe("reconcile and rejects", () => {
  it("reconcile --wait: 0 when both sides are the same, 1 when they differ, and which keys", async () => {
    await bench.create("compared");
    expect((await bench.cli(["run", "compared", "--wait"])).code).toBe(0);
    expect((await bench.json(["reconcile", "compared", "--wait"])).status).toBe("MATCH");
    await bench.database.query("DELETE FROM analytics.compared WHERE id = 13");
    const { code, stdout, stderr } = await bench.cli(["reconcile", "compared", "--wait"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^DIFFERENT +1,000 +1 +0 +0 +0$/m);
    expect(stderr).toContain("missing in the target: id=13\n");
  });

  it("runs shows reconciles as such; status and logs mean the last run that changes the target", async () => {
    const [newest] = (await bench.json(["runs", "compared", "--kind", "reconcile"])).items;
    expect(newest).toMatchObject({ kind: "reconcile", status: "SUCCESS" });
    expect((await bench.json(["runs", "compared", "--kind", "load"])).items).toMatchObject([{ kind: "load" }]);
    expect((await bench.cli(["runs", "compared"])).stdout).toMatch(/^STARTED +KIND +STATUS /);
    expect((await bench.cli(["runs", "film"])).stdout).toMatch(/^STARTED +STATUS /);
    expect(await bench.json(["status", "compared"])).toMatchObject({ last_run: { kind: "load" } });
    const logs = (...more: string[]) => bench.cli(["logs", "compared", "-f", ...more]);
    expect((await logs()).stdout).toContain("load opened");
    expect((await logs("--run", newest.id)).stdout).toContain("source and target compared");
  });

  it("reconcile names the column whose value a domain of the target refuses", async () => {
    await bench.database.query(`CREATE DOMAIN analytics.choice AS text CHECK (value NOT LIKE '% 7');
      CREATE TABLE analytics.choosy (id int PRIMARY KEY, title analytics.choice);
      GRANT ALL ON analytics.choosy TO vitrina_writer; INSERT INTO analytics.choosy VALUES (7, 'x')`);
    await bench.create("choosy", { create_target: false });
    const { stderr } = await bench.cli(["reconcile", "choosy", "--wait"]);
    expect(stderr).toContain("different: id=7: title\n");
  });

  it("rejects: listed with their reason, tried again, forgotten", async () => {
    await bench.database.query("CREATE TABLE analytics.picky (id int PRIMARY KEY, title text CHECK (id <> 5))");
    await bench.database.query("GRANT ALL ON analytics.picky TO vitrina_writer");
    await bench.create("picky", { create_target: false });
    expect((await bench.cli(["run", "picky", "--wait"])).stdout).toMatch(/^picky +SUCCESS .* 1 +[\d,]+ +[\d.]+$/m);
    const shown = await bench.cli(["status", "picky"]);
    expect(shown.stdout).toMatch(/picky +IDLE +SUCCESS \(1 rejected\)/);
    expect(shown.stderr).toMatch(/picky: the target refused 1 of [\d,]+ rows; vitrina rejects picky shows them\./);
    const [row] = rowsOf(await bench.cli(["rejects", "picky"]));
    expect(row?.slice(1, 3)).toEqual(["OPEN", '{"id":"5"}']);
    expect((await bench.cli(["rejects", "picky", "--discard"])).code).toBe(64);
    expect((await bench.cli(["rejects", "picky", "--discard", "--retry"])).code).toBe(64);
    expect(await bench.json(["rejects", "picky", "--retry"])).toMatchObject({ retried: 1 });
    expect(await bench.json(["rejects", "picky", "--discard", "--yes"])).toEqual({ discarded: expect.any(Number) });
  });
});

describe("what goes wrong", () => {
  it("is said as a sentence with a hint on standard error, with exit code 1", async () => {
    for (const args of [
      ["get", "nobody"],
      ["run", "nobody"],
      ["run", "other_mart"],
      ["pause", "film"],
    ]) {
      const { code, stdout, stderr } = await bench.cli([...args, "-o", "json"]);
      expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: "" });
      expect(stderr).toMatch(/^vitrina: .*\.\n {2}\S.*\.\n$/);
    }
  });

  it("3 when nothing answers, or something else than this API", async () => {
    const closed = await bench.cli(["list", "--api", "http://127.0.0.1:1023"]);
    expect(closed).toMatchObject({ code: 3, stdout: "" });
    expect(closed.stderr).toMatch(/^vitrina: The API at http:\/\/127.0.0.1:1023 cannot be reached.*\n {2}.*--api/);
    const stranger = createServer((_, response) => response.end("<h1>It works!</h1>"));
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
    const foreign = await bench.cli(["list"], { VITRINA_API_URL: address });
    stranger.close();
    expect(foreign).toMatchObject({
      code: 3,
      stdout: "",
      stderr: expect.stringContaining("is not the Vitrina API"),
    });
  });

  it.each([
    [["lst"]],
    [["list", "--nonsense"]],
    [["get"]],
    [["list", "-o", "xml"]],
    [["list", "--api", "ftp://example.com"]],
    [["list", "--key-file", "no-such-file"]],
    [["list", "--key", "canary"]],
    [["runs", "film", "--limit", "0"]],
    [["preview"]],
    [["preview", "film", "--query", "SELECT 1 AS id"]],
    [["validate"]],
    [["apply"]],
    [["delete"]],
    [["state", "film", "forget"]],
    [[]],
  ])("64 for wrong usage: vitrina %j", async (args) => {
    const { code, stdout, stderr } = await bench.cli(args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(stderr.length).toBeGreaterThan(10);
  });

  it.each([["--help"], ["--version"], ["runs", "--help"]])(
    "no error when nobody reads what %j prints",
    async (...args) => {
      const shell = spawn("bash", ["-c", 'set -o pipefail; "$@" | true', "sh", process.execPath, COMMAND, ...args], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      let stderr = "";
      shell.stderr.on("data", (chunk) => {
        stderr += chunk;
      });
      expect(await once(shell, "close")).toEqual([0, null]);
      expect(stderr).toBe("");
    },
  );

  it("no error when the reader stops reading", async () => {
    const child = spawn(process.execPath, [COMMAND, "events"], {
      env: { PATH: process.env["PATH"], VITRINA_API_URL: bench.url },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const closed = once(child, "close");
    let listens = false;
    child.stdout.once("data", () => {
      listens = true;
    });
    await until("it prints an event", async () => {
      await bench.cli(["run", "film", "--wait"]);
      return listens;
    });
    child.stdout.destroy();
    await bench.cli(["run", "film", "--wait"]);
    expect(await closed).toEqual([0, null]);
    expect(stderr).toBe("");
  });
});
