import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { SearchAnswer, SearchClient, SearchRequest } from "./client.ts";
import { NoAnswer } from "./client.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import type { Patience } from "./patience.ts";

/** Asks the cluster until it gives a final answer, or the patience runs out. */
export interface Cluster {
  /** Returns an answer with a success status or one of `accept`; throws for every other. */
  ask(what: string, request: SearchRequest, accept?: readonly number[]): Promise<SearchAnswer>;
}

export function patientCluster(client: SearchClient, patience: Patience): Cluster {
  return {
    async ask(what, request, accept = []) {
      for (;;) {
        const answer = await client.send(request).catch((error: unknown) => unavailable(error, what));
        if (answer instanceof VitrinaError) {
          await patience.wait(answer);
          continue;
        }
        const { failed = 0 } = (answer.body as { _shards?: { failed?: number } } | undefined)?._shards ?? {};
        if (isYes(answer.status) && failed > 0) {
          const sentence = `Could not ${what}: ${failed} shards of the index failed.`;
          await patience.wait(new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, sentence));
          continue;
        }
        if (isYes(answer.status) || accept.includes(answer.status)) {
          patience.rest();
          return answer;
        }
        const failure = refusal(answer, what);
        if (!isPassing(answer)) throw failure;
        await patience.wait(failure, answer.retryAfterMs);
      }
    },
  };
}

export const isYes = (status: number): boolean => status >= 200 && status < 300;

/**
 * A failure that may pass. A blocked index (because of a full disk, say) is one: somebody will make room. So is a
 * search that a shard or its node did not survive.
 */
export function isPassing({ status, body }: Pick<SearchAnswer, "status" | "body">): boolean {
  if ([408, 429, 502, 503, 504].includes(status)) return true;
  if (status === 500) return reasonOf(body).startsWith("search_phase_execution_exception");
  return status === 403 && reasonOf(body).startsWith("cluster_block_exception");
}

export function unavailable(error: unknown, what: string): VitrinaError {
  if (!(error instanceof NoAnswer) && !(error instanceof SyntaxError)) throw error;
  return new VitrinaError(SEARCH_ERRORS.SEARCH_UNAVAILABLE, `Could not ${what}: ${error.message}.`, { cause: error });
}

export function refusal(answer: Pick<SearchAnswer, "status" | "body">, what: string): VitrinaError {
  const reason = reasonOf(answer.body);
  const sentence = `Could not ${what}: the search cluster answered ${answer.status}${reason === "" ? "" : ` (${reason})`}.`;
  if (isPassing(answer)) return new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, sentence);
  if (answer.status === 401 || answer.status === 403) {
    return new VitrinaError("PERMISSION_DENIED", sentence, {
      hint: "Give the login of ELASTICSEARCH_URL the right to manage and write the index and its aliases.",
    });
  }
  return new VitrinaError(SEARCH_ERRORS.SEARCH_REFUSED, sentence);
}

const LONGEST_REASON = 300;

/** `type: reason` of an error of the cluster, without values of documents. */
export function reasonOf(body: unknown): string {
  const error = (body as { error?: unknown } | undefined)?.error;
  if (typeof error === "string") return error.slice(0, LONGEST_REASON);
  const { type, reason } = (error ?? {}) as { type?: string; reason?: string };
  if (type === undefined) return "";
  const plain = (reason ?? "")
    .replace(/\.? ?Preview of field's value: .*$/s, "")
    .replace(/ in document with id '.*?'(?=\.|$)/s, "");
  return `${type}: ${plain}`.slice(0, LONGEST_REASON);
}
