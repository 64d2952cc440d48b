import { z } from "zod";
import { ROLES } from "./access.ts";

/**
 * - `done`: something was changed; written in the transaction of the change.
 * - `refused`: somebody with the right to change it asked for something impossible.
 * - `denied`: somebody without the right to change it.
 */
const OUTCOMES = ["done", "refused", "denied"] as const;

export const auditEntrySchema = z.object({
  id: z.string(),
  at: z.date(),
  actor: z.string().describe("key:<name>, jwt:<subject>, local (no login), cli, or unknown."),
  role: z.enum(ROLES).nullable(),
  key_id: z.string().nullable(),
  ip: z.string().nullable(),
  action: z.string().describe("The operationId."),
  object: z.string().nullable().describe("The id of what was changed, or what the path named."),
  object_name: z.string().nullable().describe("Its name at that time."),
  outcome: z.enum(OUTCOMES),
  http_status: z.int().nullable(),
  request_id: z.string().nullable(),
  details: z.record(z.string(), z.unknown()),
});
export type AuditEntry = z.infer<typeof auditEntrySchema>;

/** Where a change comes from: the part of its entry that is known before the change. */
export type AuditOrigin = Pick<
  AuditEntry,
  "actor" | "role" | "key_id" | "ip" | "action" | "object" | "http_status" | "request_id"
>;

/** An attempt that changed nothing. */
export type AuditedAttempt = AuditOrigin & Pick<AuditEntry, "outcome" | "details">;
