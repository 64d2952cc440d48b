import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { EVERY_ERROR } from "../support/every-error.ts";

const PROBLEMS = fileURLToPath(new URL("../../integrations/airflow/src/vitrina_provider/problems.py", import.meta.url));

it("the Airflow provider lets a task be retried after exactly the errors that may pass", () => {
  const [, listed = ""] = /PASSING_CODES = frozenset\(\s*\{([^}]*)\}/.exec(readFileSync(PROBLEMS, "utf8")) ?? [];
  const codes = [...listed.matchAll(/"(\w+)"/g)].map(([, code]) => code);
  const passing = EVERY_ERROR.filter(([, { retry }]) => ["retry", "wait", "reconnect"].includes(retry));
  expect(codes).toEqual(passing.map(([code]) => code).sort());
});
