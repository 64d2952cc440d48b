import { AsyncLocalStorage } from "node:async_hooks";
import { type AuditOrigin, auditEntrySchema } from "../../domain/audit.ts";
import type { SqlSession } from "../../domain/sql-session.ts";
import { inTransaction, type Pool } from "../../postgres/connection.ts";
import type { AuditLog } from "../ports/access.ts";
import { asking } from "./asking.ts";
import { pageOf } from "./pages.ts";
import { rowsOf } from "./rows.ts";

/** What a request is found to be about while it is carried out. */
interface Subject {
  /** Set when its entry has been written, before the transaction ends. */
  isRecorded?: boolean;
  object?: string;
  objectName?: string;
  details?: Readonly<Record<string, unknown>>;
}

const recorded = new AsyncLocalStorage<{ readonly origin: AuditOrigin; readonly subject: Subject }>();

/** For what Vitrina keeps for itself while it answers: nobody asked for it, so it is no entry of its own. */
export function unrecorded<T>(work: () => T): T {
  return recorded.exit(work);
}

/** Names what the change in progress is about. Means nothing where changes are not recorded, as in a runner. */
export function noteSubject(object: string, objectName: string, details?: Readonly<Record<string, unknown>>): void {
  const subject = recorded.getStore()?.subject;
  if (subject !== undefined) {
    Object.assign(subject, { object, objectName, isRecorded: false, ...(details && { details }) });
  }
}

/**
 * For a transaction that changes several things: an entry for the one that was named last, which is not written again at
 * the end. Without a change since then there is nothing to write.
 */
export async function recordSubject(session: SqlSession): Promise<void> {
  await recordChange(session);
  passOverSubject();
}

/** What was only looked at is not what the change is about. */
export function passOverSubject(): void {
  const subject = recorded.getStore()?.subject;
  if (subject !== undefined) subject.isRecorded = true;
}

/**
 * A pool whose transactions write their own entry of the audit log, when they are made while a request is recorded
 * and have changed something. Thus no statement of the meta-store can forget it, and none can be kept without it.
 */
export function recordingPool(pool: Pool): Pool {
  const audited: Pool = {
    connect: () => pool.connect(),
    end: () => pool.end(),
    beforeCommit: recordChange,
    query: (text, values) =>
      recorded.getStore() === undefined
        ? pool.query(text, values)
        : inTransaction(audited, (session) => session.query(text, values)),
  };
  return audited;
}

/** A transaction gets an id with its first change; without one it only looked. */
async function recordChange(session: SqlSession): Promise<void> {
  const change = recorded.getStore();
  if (change === undefined) return;
  const { origin, subject } = change;
  if (subject.isRecorded) return;
  await session.query(`${INSERT} WHERE pg_current_xact_id_if_assigned() IS NOT NULL`, [
    ...originValues({ ...origin, object: subject.object ?? origin.object }),
    subject.objectName ?? null,
    "done",
    JSON.stringify(subject.details ?? {}),
  ]);
}

const INSERT = `
  INSERT INTO etl.audit_log
    (actor, role, key_id, ip, action, object, http_status, request_id, object_name, outcome, details)
  SELECT $1, $2, $3, $4, $5, $6, $7::integer, $8, $9, $10, $11::jsonb`;

function originValues({ actor, role, key_id, ip, action, object, http_status, request_id }: AuditOrigin): unknown[] {
  return [actor, role, key_id, ip, action, object, http_status, request_id];
}

/** Newest first. The page mark is the id of the last entry. */
const LIST = `
  SELECT id::text, at, actor, role, key_id, ip, action, object, object_name, outcome, http_status, request_id, details
    FROM etl.audit_log
   WHERE ($1::int8 IS NULL OR id < $1)
     AND ($2::text IS NULL OR actor = $2)
     AND ($3::text IS NULL OR action = $3)
     AND ($4::text IS NULL OR object = $4 OR object_name = $4)
   ORDER BY id DESC LIMIT $5`;

export function auditLog(pool: Pool): AuditLog {
  return {
    recording: (origin, work) => recorded.run({ origin, subject: {} }, work),

    recordAttempt: asking("write the audit log", async (attempt) => {
      const values = [...originValues(attempt), null, attempt.outcome, JSON.stringify(attempt.details)];
      await unrecorded(() => pool.query(INSERT, values));
    }),

    list: asking("read the audit log", async (page) => {
      const { after = null, actor = null, action = null, object = null, limit } = page;
      const found = await pool.query(LIST, [after, actor, action, object, limit + 1]);
      return pageOf(rowsOf(auditEntrySchema, found), page, ({ id }) => id);
    }),
  };
}
