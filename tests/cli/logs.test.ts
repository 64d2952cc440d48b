import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliBench, openCliBench } from "../support/cli.ts";
import { until } from "../support/until.ts";

/** vitrina logs, against a real API and a real runner. */

let bench: CliBench;
beforeAll(async () => {
  bench = await openCliBench();
  await bench.startApi();
  await bench.startRunner();
  await bench.create("film", { batch_size: 500 });
  expect((await bench.cli(["run", "film", "--wait"])).code).toBe(0);
});
afterAll(() => bench?.stop());

const linesOf = (stdout: string): string[] => stdout.trimEnd().split("\n");

/** The last line arrives a moment after the run has ended. */
async function ended(args: readonly string[]): Promise<string[]> {
  return until("the last line is there", async () => {
    const { code, stdout, stderr } = await bench.cli(["logs", ...args]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout.includes("run ended") && linesOf(stdout);
  });
}

describe("vitrina logs", () => {
  it("shows the last run, a line for a line", async () => {
    const lines = await ended(["film"]);
    const shapes = [
      / {2}INFO {3}run started {2}kind=load {2}status=RUNNING {2}trigger=api {2}attempt=1 /,
      / {2}INFO {3}load opened {2}data_path=/,
      / {2}INFO {3}batch committed {2}batch=1 {2}rows_read=500 {2}rows_written=500 /,
      / {2}INFO {3}batch committed {2}batch=2 {2}rows_read=500 /,
      / {2}INFO {3}run ended {2}outcome=succeeded {2}status=IDLE {2}batches=2 {2}rows_read=1000 /,
    ];
    expect(lines).toEqual(shapes.map((shape) => expect.stringMatching(shape)));
    for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}/);
  });

  it("-o json: one document per line, as the API has them", async () => {
    const documents = (await ended(["film", "-o", "json"])).map((line) => JSON.parse(line));
    const [run] = (await bench.json(["runs", "film"])).items;
    const answer = await fetch(`${bench.url}/api/v1/pipelines/film/runs/${run.id}/logs?limit=200`);
    expect(documents).toEqual(((await answer.json()) as { items: unknown[] }).items);
  });

  it("--run shows another run, and --level the grave lines of it", async () => {
    const [first] = (await bench.json(["runs", "film"])).items;
    await bench.database.query("ALTER TABLE content.film RENAME title TO titel");
    expect((await bench.cli(["run", "film", "--wait"])).code).toBe(1);
    await bench.database.query("ALTER TABLE content.film RENAME titel TO title");
    await ended(["film"]);
    const grave = linesOf((await bench.cli(["logs", "film", "--level", "warn"])).stdout);
    expect(grave).toEqual([expect.stringMatching(/ {2}ERROR {2}run failed {2}code=\w+ {2}error=".*title.*"$/)]);
    const earlier = await bench.cli(["logs", "film", "--run", first.id]);
    expect(earlier.stdout).toContain("outcome=succeeded");
    expect(await bench.cli(["logs", "film", "--run", "nothing"])).toMatchObject({ code: 1, stdout: "" });
  });

  it("--follow shows lines as they come, over all attempts, and ends with the last of them", async () => {
    const unlock = await bench.createStuck("stuck");
    const { body } = await fetch(`${bench.url}/pipelines/stuck/run`, { method: "POST" });
    await body?.cancel();
    await until("it runs", async () => (await bench.json(["status", "stuck"])).status === "RUNNING");
    const following = bench.startCli(["logs", "stuck", "--follow"]);
    await until("an attempt has failed", () => following.stdout().includes("attempt failed; trying again"));
    expect(following.stdout()).not.toContain("run ended");
    await unlock();
    const { code, stdout } = await following.result;
    expect(code).toBe(0);
    const lines = linesOf(stdout);
    expect(lines.filter((line) => line.includes("run started")).length).toBeGreaterThanOrEqual(2);
    expect(lines.at(-1)).toMatch(/ {2}run ended {2}outcome=succeeded /);
  });

  it("says that a pipeline has never run, or does not exist", async () => {
    await bench.create("idle");
    expect(await bench.cli(["logs", "idle"])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("idle has never run"),
    });
    expect((await bench.cli(["logs", "nobody"])).code).toBe(1);
    expect((await bench.cli(["logs", "film", "--level", "loud"])).code).toBe(64);
  });
});
