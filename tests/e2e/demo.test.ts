import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LONG } from "../support/long.ts";
import { spawnVitrina, type VitrinaProcess } from "../support/vitrina-process.ts";
import { hasPython } from "../tasks/task-folder.ts";

/** The second time shows that it may be repeated. */
const TIMES = LONG ? 2 : 1;

const DEMO = fileURLToPath(new URL("../../examples/cinema/demo.mjs", import.meta.url));

let folder: string;
let vitrina: VitrinaProcess;
let url: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vitrina-demo-"));
  vitrina = spawnVitrina(["start"], { cwd: folder, env: { API_PORT: "0", API_AUTH: "required" } });
  await vitrina.untilPrinted("Ctrl-C");
  url = /API {8}(http:\/\/[^/]+)/.exec(vitrina.output())?.[1] as string;
});
afterAll(async () => {
  await vitrina.stop();
  await rm(folder, { recursive: true, force: true });
});

async function demo(): Promise<string> {
  const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], VITRINA_API_URL: url };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [DEMO], { cwd: folder, env });
  return stdout + stderr;
}

describe("R12 the demo scenario", () => {
  it("goes through pause, resume, reload-config and reconcile, and may be repeated", async () => {
    for (let time = 1; time <= TIMES; time += 1) {
      const output = await demo();
      expect(output).toMatch(/film_dim_full +MATCH +1000 rows in the source, 1000 in the target/);
      expect(output).toMatch(/film_shelf_full +MATCH +1000 rows in the source, 1000 in the target/);
      if (hasPython) expect(output).toMatch(/viewer_segments_full +MATCH +5000 rows in the source, 5000 in the target/);
      expect(output).toMatch(/rating_log_demo +PAUSED/);
      expect(output).toContain("MATCH: 50000 rows in the source, 50000 in the target.");
      expect(output).not.toMatch(/vitrina_[0-9a-f]{12}/);
    }
  });

  it("R8.4 leaves no key behind that is still valid", async () => {
    const list = spawnVitrina(["key", "list"], { cwd: folder });
    expect(await list.exited).toBe(0);
    const keys = list.output().trim().split("\n");
    expect(keys).toHaveLength(TIMES);
    expect(keys.filter((key) => !/demo scenario +revoked /.test(key))).toEqual([]);
  });
});
