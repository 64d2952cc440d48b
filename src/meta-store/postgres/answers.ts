import type { Pool } from "../../postgres/connection.ts";
import type { AnswerStore, KeyedRequest, KnownRequest, StoredAnswer } from "../ports/answers.ts";
import { asking } from "./asking.ts";
import { unrecorded } from "./audit.ts";

/** A request that has not ended by then has died with its process. */
const UNDER_WAY_AT_MOST = "interval '1 minute'";
const KEPT_FOR = "interval '24 hours'";

const BEGIN = `
  INSERT INTO etl.etl_answers AS a (actor, key, operation, request_hash) VALUES ($1, $2, $3, $4)
  ON CONFLICT (actor, key, operation) DO UPDATE
    SET request_hash = excluded.request_hash, begun_at = excluded.begun_at, status = NULL, headers = NULL, body = NULL
    WHERE a.begun_at < clock_timestamp() - ${KEPT_FOR}
       OR (a.status IS NULL AND a.request_hash = excluded.request_hash
           AND a.begun_at < clock_timestamp() - ${UNDER_WAY_AT_MOST})
  RETURNING key`;

async function beginRequest(pool: Pool, request: KeyedRequest): Promise<KnownRequest> {
  const { actor, key, operation, hash } = request;
  const begun = await pool.query(BEGIN, [actor, key, operation, hash]);
  if (begun.rows.length > 0) {
    await pool.query(`DELETE FROM etl.etl_answers WHERE begun_at < clock_timestamp() - ${KEPT_FOR}`);
    return { kind: "begun" };
  }
  const { rows } = await pool.query(
    "SELECT request_hash, status, headers, body FROM etl.etl_answers WHERE actor = $1 AND key = $2 AND operation = $3",
    [actor, key, operation],
  );
  const [known] = rows;
  // Gone in between: the other request came to nothing, and the next attempt of this one begins.
  if (known === undefined) return { kind: "under_way" };
  if (known.request_hash !== hash) return { kind: "other" };
  if (known.status === null) return { kind: "under_way" };
  return { kind: "answered", answer: { status: known.status, headers: known.headers, body: known.body } };
}

async function keepAnswer(pool: Pool, request: KeyedRequest, answer: StoredAnswer): Promise<void> {
  await pool.query(
    `UPDATE etl.etl_answers SET status = $4, headers = $5, body = $6
      WHERE actor = $1 AND key = $2 AND operation = $3 AND status IS NULL`,
    [request.actor, request.key, request.operation, answer.status, JSON.stringify(answer.headers), answer.body],
  );
}

async function forgetRequest(pool: Pool, { actor, key, operation }: KeyedRequest): Promise<void> {
  await pool.query("DELETE FROM etl.etl_answers WHERE actor = $1 AND key = $2 AND operation = $3 AND status IS NULL", [
    actor,
    key,
    operation,
  ]);
}

export function answerStore(pool: Pool): AnswerStore {
  return {
    begin: asking("begin the request", (request) => unrecorded(() => beginRequest(pool, request))),
    keep: asking("keep the answer", (request, answer) => unrecorded(() => keepAnswer(pool, request, answer))),
    forget: asking("forget the request", (request) => unrecorded(() => forgetRequest(pool, request))),
  };
}
