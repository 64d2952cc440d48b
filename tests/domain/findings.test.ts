import { describe, expect, it } from "vitest";
import { Findings } from "../../src/control-plane/validate/findings.ts";
import { VitrinaError } from "../../src/domain/error-catalogue.ts";
import { mayPass } from "../../src/domain/retry-policy.ts";
import { EVERY_ERROR } from "../support/every-error.ts";

describe("a check that could not be made", () => {
  const passing = EVERY_ERROR.filter(([, { retry }]) => mayPass(retry));

  it.each(passing)(
    "because of %s says nothing against the configuration, or that nobody answered",
    async (code, known) => {
      const findings = new Findings();
      const check = { pointer: "/source_query", question: "whether it can run" };
      await findings.attempt(check, async () => {
        throw new VitrinaError({ code, ...known }, "The host db-7 said no.");
      });
      const [found] = findings.all;
      if (known.retry === "wait") expect(found).toMatchObject({ severity: "warning" });
      else expect(found?.message).toBe("The database cannot be reached; it remains unknown whether it can run.");
    },
  );
});
