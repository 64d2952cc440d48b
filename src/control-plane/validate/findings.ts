import { z } from "zod";
import { type CodedProblem, ERROR_CATALOGUE, type Problem, VitrinaError } from "../../domain/error-catalogue.ts";

export const findingSchema = z.object({
  code: z.string().describe("Stable; programs decide by it."),
  severity: z.enum(["error", "warning"]).describe("With an error a run fails; a warning it survives."),
  pointer: z.string().describe("JSON pointer to the field; empty: the pipeline as a whole."),
  message: z.string(),
  hint: z.string().describe("What to do next."),
  line: z.int().optional().describe("Where in the query, from 1."),
  column: z.int().optional(),
});
export type Finding = z.infer<typeof findingSchema>;
type Severity = Finding["severity"];

/** Where a check belongs, and what remains unknown when it takes too long: "whether …". */
interface Check {
  readonly pointer: string;
  readonly question: string;
  /** True when nothing else can be checked without the answer. */
  readonly isEssential?: boolean;
}

/** Collects what is wrong, so that one broken part does not hide the others. */
export class Findings {
  readonly all: Finding[] = [];

  get hasErrors(): boolean {
    return this.all.some(({ severity }) => severity === "error");
  }

  /** `pointer` is for errors that do not name their place. An error with several problems becomes as many findings. */
  add(error: VitrinaError, pointer: string, severity: Severity = "error"): void {
    const { code, hint, message, extra, problems } = error;
    const places: readonly Problem[] = problems.length > 0 ? problems : [{ ...extra, pointer: "", message }];
    for (const place of places) {
      const { line, column } = place;
      this.all.push({
        code,
        severity,
        pointer: place.pointer === "" ? pointer : place.pointer,
        message: place.message,
        hint,
        ...(line !== undefined && { line }),
        ...(column !== undefined && { column }),
      });
    }
  }

  addProblem({ code, pointer, message }: CodedProblem): void {
    this.all.push({ code, severity: "error", pointer, message, hint: ERROR_CATALOGUE[code].hint });
  }

  /** `undefined` when the check could not be made, for a reason that has been added. */
  async attempt<T>(check: Check, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof VitrinaError) || error.code === "INTERNAL") throw error;
      const isLate = error.retry === "wait" || error.code === "STATEMENT_TIMEOUT";
      this.add(asFinding(check, error), check.pointer, isLate && !check.isEssential ? "warning" : "error");
      return undefined;
    }
  }
}

function asFinding({ question }: Check, error: VitrinaError): VitrinaError {
  switch (error.code) {
    case "DATABASE_BUSY":
      return new VitrinaError("CHECK_TIMED_OUT", `It could not be found out in time ${question}. ${error.message}`);
    case "STATEMENT_TIMEOUT":
      return new VitrinaError("CHECK_TIMED_OUT", `It could not be found out in time ${question}.`);
  }
  // The driver's own message names hosts and roles.
  if (error.retry === "reconnect" || error.code === "DATABASE_MISSING")
    return new VitrinaError(error.known, `The database cannot be reached; it remains unknown ${question}.`);
  return error;
}
