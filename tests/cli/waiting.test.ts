import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunningPart } from "../../src/main/api.ts";
import { type CliBench, FILMS, openCliBench } from "../support/cli.ts";
import { until } from "../support/until.ts";

/** `run --wait` and `pause --wait` while runs fail, are paused, and lose their runner or the API. */

let bench: CliBench;
let api: RunningPart;
beforeAll(async () => {
  bench = await openCliBench({ TARGET_INDEXES: "films" });
  api = await bench.startApi();
  await bench.startRunner();
});
afterAll(() => bench?.stop());

const statusOf = async (name: string): Promise<string> => {
  const { status } = (await (await fetch(`${bench.url}/api/v1/pipelines/${name}`)).json()) as { status: string };
  return status;
};

describe("run", () => {
  it("without --wait only asks", async () => {
    await bench.create("asked");
    const answer = await bench.json(["run", "asked"]);
    expect(answer).toMatchObject({ name: "asked", run_request: 1 });
    await until("it has run", async () => (await statusOf("asked")) === "IDLE");
  });

  it("--wait shows plain lines on a pipe, and ends with a summary of every run", async () => {
    await bench.create("one");
    await bench.create("two");
    const { code, stdout, stderr } = await bench.cli(["run", "one", "two", "--wait"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^one +SUCCESS +1,000 +1,000 /m);
    expect(stdout).toMatch(/^two +SUCCESS +1,000 +1,000 /m);
    expect(stderr).toMatch(/^one: SUCCESS {2}1,000 rows {2}[\d,]+ rows\/s {2}\d+ batch(es)? {2}0:\d\d$/m);
    expect(stderr).toMatch(/^(one: .*\n|two: .*\n)+$/);
    expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u);
  });

  it("--wait gives the final run as JSON, one for one name and a list for several", async () => {
    const final = { status: "SUCCESS", rows_read: FILMS };
    expect(await bench.json(["run", "one", "--wait"])).toMatchObject(final);
    expect(await bench.json(["run", "one", "two", "--wait"])).toMatchObject([final, final]);
  });

  it("--wait says what a person should know of a run that succeeded, and runs and status say it later", async () => {
    await bench.create("emptied", { mode: "incremental", incremental_key: "id" });
    expect((await bench.cli(["run", "emptied", "--wait"])).stderr).not.toContain("read again");
    await bench.database.query("TRUNCATE analytics.emptied");
    const note = "emptied: analytics.emptied was emptied by somebody: everything is read again.";
    const { code, stderr } = await bench.cli(["run", "emptied", "--wait"]);
    expect({ code, told: stderr.split(note).length - 1 }).toEqual({ code: 0, told: 1 });
    expect((await bench.cli(["runs", "emptied"])).stdout).toMatch(/NOTES\n.* SUCCESS .*everything is read again\.$/m);
    expect((await bench.cli(["status", "emptied"])).stderr).toContain(note);
  });

  it("--wait fails with the run, and says why", async () => {
    await bench.create("broken", { source_query: "SELECT id, 1 / (id - 5) AS x FROM content.film" });
    const { code, stdout, stderr } = await bench.cli(["run", "broken", "--wait"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^broken +FAILED /m);
    expect(stderr).toMatch(/^vitrina: broken failed: .*\.$/m);
    const again = await bench.cli(["run", "broken", "nobody", "--wait", "-o", "json"]);
    expect(again.code).toBe(1);
    expect(JSON.parse(again.stdout)).toMatchObject([{ status: "FAILED" }]);
    expect(again.stderr).toContain('"nobody"');
    expect((await bench.cli(["status", "broken"])).stderr).toMatch(/^broken: .*\.$/m);
  });

  it("--wait follows the retries of a run, to their end, and what follows a load in parts", async () => {
    const unlock = await bench.createStuck("retried");
    const waiting = bench.startCli(["run", "retried", "--wait", "-o", "json"]);
    await waiting.untilSaid("attempt 2");
    await unlock();
    const { code, stdout } = await waiting.result;
    expect({ code, run: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      run: { status: "SUCCESS", trigger: "follow_up" },
    });
  });

  it("--wait ends when somebody pauses the run, as not done; pause --wait ends then, too", async () => {
    const unlock = await bench.createStuck("paused");
    const waiting = bench.startCli(["run", "paused", "--wait"]);
    await waiting.untilSaid("RUNNING");
    const pausing = bench.startCli(["pause", "paused", "--wait", "-o", "json"]);
    await until("the pause is asked for", async () => (await statusOf("paused")) !== "RUNNING");
    await unlock();
    const [run, pause] = await Promise.all([waiting.result, pausing.result]);
    expect(pause).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(pause.stdout)).toMatchObject({ status: "PAUSED", last_run: { status: "PAUSED" } });
    expect(run).toMatchObject({ code: 1, stdout: expect.stringMatching(/^paused +PAUSED /m) });
    expect(run.stderr).toMatch(/^ {2}vitrina run paused continues it\.$/m);
    expect(await bench.json(["run", "paused", "--wait"])).toMatchObject({ status: "SUCCESS" });
  });

  it("cancel ends the run under way after a question, and withdraws a request without one", async () => {
    const unlock = await bench.createStuck("unwanted");
    const waiting = bench.startCli(["run", "unwanted", "--wait"]);
    await waiting.untilSaid("RUNNING");
    expect(await bench.cli(["cancel", "unwanted"])).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/ends without its last batch.*\n {2}Add --yes to do it\./),
    });
    expect(await bench.json(["cancel", "unwanted", "--yes", "--wait"])).toMatchObject({
      status: "IDLE",
      last_run: { status: "CANCELLED" },
    });
    const run = await waiting.result;
    expect(run).toMatchObject({ code: 1, stdout: expect.stringMatching(/^unwanted +CANCELLED /m) });
    expect(run.stderr).toMatch(/was cancelled before it finished/);
    await unlock();
    expect(await bench.json(["run", "unwanted", "--wait"])).toMatchObject({ status: "SUCCESS" });
    expect(await bench.json(["cancel", "unwanted"])).toMatchObject({ status: "IDLE" });
  });

  it("is refused until a restore has ended, and one that is withdrawn is asked for again by its own command", async () => {
    await bench.create("kept", { target_table: "es:films" });
    await bench.stopRunner();
    const waiting = bench.startCli(["restore-previous", "kept", "--wait"]);
    await until("it is asked for", async () => (await statusOf("kept")) === "RUN_REQUESTED");
    expect(await bench.cli(["run", "kept"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^vitrina: kept is RUN_REQUESTED to bring back its previous target; .*cancelled\./),
    });
    expect(await bench.json(["cancel", "kept"])).toMatchObject({ status: "IDLE" });
    const { code, stderr } = await waiting.result;
    expect(code).toBe(1);
    expect(stderr).toMatch(/withdrawn\. vitrina restore-previous kept requests it again\.$/m);
    await bench.startRunner();
  });

  it("--wait stops by Ctrl-C, and the run goes on", async () => {
    const unlock = await bench.createStuck("left");
    const waiting = bench.spawnCli(["run", "left", "--wait"]);
    await waiting.untilSaid("RUNNING");
    waiting.signal("SIGINT");
    const { code, stdout, stderr } = await waiting.result;
    expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
    expect(stderr).toMatch(/Stopped waiting.*runs go on/);
    expect(["RUNNING", "RUN_REQUESTED"]).toContain(await statusOf("left"));
    await unlock();
    await until("it has ended", async () => (await statusOf("left")) === "IDLE");
  });

  it("--wait survives the loss of the runner and a restart of the API", async () => {
    const unlock = await bench.createStuck("tough");
    await bench.stopRunner();
    const mortal = await bench.spawnRunner();
    const waiting = bench.startCli(["run", "tough", "--wait", "-o", "json"]);
    await waiting.untilSaid("RUNNING");
    mortal.signal("SIGKILL");
    await mortal.exited;
    await api.stop();
    // The last answer of an API that stops is one of its own; then there is none.
    await waiting.untilSaid("Waiting for it; Ctrl-C stops waiting.");
    api = await bench.startApi();
    await waiting.untilSaid("The API answers again.");
    await bench.startRunner();
    await unlock();
    const { code, stdout } = await waiting.result;
    expect({ code, run: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      run: { status: "SUCCESS", trigger: "recovery" },
    });
  });
});

describe("events", () => {
  it("shows what happens, as lines or as JSON lines", async () => {
    await bench.create("watched");
    const lines = bench.spawnCli(["events", "watched"]);
    const documents = bench.spawnCli(["events", "-o", "json"]);
    await until("both listen", async () => {
      await bench.cli(["run", "watched", "--wait"]);
      return lines.stdout().includes("watched: run SUCCESS") && documents.stdout().includes("watched");
    });
    const events = documents
      .stdout()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events).toContainEqual({ name: "pipeline", data: expect.objectContaining({ name: "watched" }) });
    for (const watching of [lines, documents]) {
      watching.signal("SIGINT");
      expect(await watching.result).toMatchObject({ code: "SIGINT", stderr: "" });
    }
  });
});
