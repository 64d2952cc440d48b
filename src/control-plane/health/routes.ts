import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { problems, sendProblem } from "../problem.ts";
import { isSchemaMisfit } from "../refuse-other-schemas.ts";

const OK = { status: "ok" } as const;
const response = { 200: answer("It is well.", z.object({ status: z.literal("ok") })) };
const tags = ["health"];

const operations = {
  getHealth: { tags, operationId: "getHealth", summary: "The process lives", response },
  getLiveness: { tags, operationId: "getLiveness", summary: "The process lives", response },
  getReadiness: {
    tags,
    operationId: "getReadiness",
    summary: "The database answers and has the right schema",
    response: { ...response, ...problems(503) },
  },
};

export function healthRoutes(api: Api, { store, log }: ApiParts): void {
  api.get("/health", { schema: operations.getHealth }, () => OK);
  api.get("/health/live", { schema: operations.getLiveness }, () => OK);
  api.get("/health/ready", { schema: operations.getReadiness }, async (request, reply) => {
    try {
      await store.checkReady();
      return OK;
    } catch (error) {
      log.warn({ err: error }, "not ready");
      return sendProblem(request, reply, whyNotReady(error), 503);
    }
  });
}

/** A schema that does not fit is reported as such; other database errors go only to the log. */
function whyNotReady(error: unknown): VitrinaError {
  if (isSchemaMisfit(error)) return error;
  return new VitrinaError("DATABASE_UNAVAILABLE", "The database cannot be reached at the moment.", { cause: error });
}
