import { mayActAs } from "../../domain/access.ts";
import type { ErrorCode } from "../../domain/error-catalogue.ts";
import type { Api } from "../api.ts";

/** Errors that contain text from a task's code: exceptions, and what it printed last. Both may quote rows. */
const WITH_WORDS: ReadonlySet<unknown> = new Set<ErrorCode>([
  "TASK_FAILED",
  "TASK_RETRY_LATER",
  "TASK_RESULT_INVALID",
  "TASK_TIMEOUT",
  "TASK_WORKER_LOST",
]);
/** Where such a text stands beside its code: in a run, a reconcile, a pipeline that waits, a line of a log. */
const TEXTS: ReadonlySet<string> = new Set(["error", "reason"]);

/**
 * Whoever writes a task needs its words, and whoever may not read rows must not read them there. So they are kept as they
 * are, and taken out of whatever is answered to a role below operator, who may read rejected rows.
 */
export function hideTaskWords(api: Api): void {
  api.addHook("preSerialization", async ({ caller }, _reply, payload) =>
    caller?.role !== undefined && mayActAs(caller.role, "operator") ? payload : withoutTaskWords(payload),
  );
}

export function withoutTaskWords<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutTaskWords) as T;
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const { error_code, code } = value as { error_code?: unknown; code?: unknown };
  const hasWords = WITH_WORDS.has(error_code) || WITH_WORDS.has(code);
  const cleaned = Object.entries(value).map(([field, inner]) => [
    field,
    hasWords && TEXTS.has(field) && typeof inner === "string" ? withoutWords(inner) : withoutTaskWords(inner),
  ]);
  return Object.fromEntries(cleaned) as T;
}

/** Up to the first colon the sentence is ours: "Task normalise_title failed: …". */
function withoutWords(text: string): string {
  const [own = ""] = text.split(":", 1);
  if (own === text) return text;
  return `${own}. What the task itself says may quote rows: an operator can read it.`;
}
