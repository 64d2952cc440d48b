import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { hasPython } from "./task-folder.ts";

it.skipIf(!hasPython)("the Python package passes its own tests", () => {
  const { status, stderr } = spawnSync(
    "python3",
    ["-m", "unittest", "discover", "--start-directory", "tests", "-t", "."],
    {
      cwd: fileURLToPath(new URL("../../python", import.meta.url)),
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
      encoding: "utf8",
    },
  );
  expect(stderr).toMatch(/Ran \d\d tests[\s\S]*OK/);
  expect(status).toBe(0);
});
