import { VitrinaError } from "../domain/error-catalogue.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Api } from "./api.ts";
import { sendProblem } from "./problem.ts";

/** How long an answer holds: asking costs a query, and an upgrade takes longer. */
const GOOD_FOR_MS = 1000;

/** True for errors that show that database and program are of different versions. */
export function isSchemaMisfit(error: unknown): error is VitrinaError {
  return error instanceof VitrinaError && ["SCHEMA_MISSING", "SCHEMA_TOO_NEW"].includes(error.code);
}

/**
 * A program that does not know the schema could write what a newer one misreads: it answers 503 until it is replaced.
 * What anyone may ask, such as its health, is answered.
 */
export function refuseOtherSchemas(api: Api, store: Pick<MetaStore, "checkReady">): void {
  let askedAt = Number.NEGATIVE_INFINITY;
  let answer: Promise<VitrinaError | undefined> = Promise.resolve(undefined);
  const misfit = (): Promise<VitrinaError | undefined> => {
    if (performance.now() - askedAt < GOOD_FOR_MS) return answer;
    askedAt = performance.now();
    // If the database is down, the request itself reports it.
    answer = store.checkReady().then(
      () => undefined,
      (error: unknown) => (isSchemaMisfit(error) ? error : undefined),
    );
    return answer;
  };
  api.addHook("onRequest", async (request, reply) => {
    if (request.is404 || request.routeOptions.config.access === "anyone") return undefined;
    const error = await misfit();
    return error === undefined ? undefined : sendProblem(request, reply, error, 503);
  });
}
