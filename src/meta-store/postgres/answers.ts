import { z } from "zod";
import type { Pool } from "../../postgres/connection.ts";
import type { AnswerStore, KnownRequest } from "../ports/answers.ts";
import { asking } from "./asking.ts";
import { unrecorded } from "./audit.ts";
import { rowOf } from "./rows.ts";

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

/** All of the answer, or nothing of it yet. */
const knownRow = z.union([
  z.object({ request_hash: z.string(), status: z.null() }),
  z.object({
    request_hash: z.string(),
    status: z.int(),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
  }),
]);

export function answerStore(pool: Pool): AnswerStore {
  return {
    begin: asking("begin the request", ({ actor, key, operation, hash }) =>
      unrecorded(async (): Promise<KnownRequest> => {
        const begun = await pool.query(BEGIN, [actor, key, operation, hash]);
        if (begun.rows.length > 0) {
          await pool.query(`DELETE FROM etl.etl_answers WHERE begun_at < clock_timestamp() - ${KEPT_FOR}`);
          return { kind: "begun" };
        }
        const found = await pool.query(
          "SELECT request_hash, status, headers, body FROM etl.etl_answers WHERE actor = $1 AND key = $2 AND operation = $3",
          [actor, key, operation],
        );
        const known = rowOf(knownRow, found);
        // Gone in between: the other request came to nothing, and the next attempt of this one begins.
        if (known === undefined) return { kind: "under_way" };
        if (known.request_hash !== hash) return { kind: "other" };
        if (known.status === null) return { kind: "under_way" };
        return { kind: "answered", answer: { status: known.status, headers: known.headers, body: known.body } };
      }),
    ),

    keep: asking("keep the answer", async ({ actor, key, operation }, { status, headers, body }) => {
      await unrecorded(() =>
        pool.query(
          `UPDATE etl.etl_answers SET status = $4, headers = $5, body = $6
            WHERE actor = $1 AND key = $2 AND operation = $3 AND status IS NULL`,
          [actor, key, operation, status, JSON.stringify(headers), body],
        ),
      );
    }),

    forget: asking("forget the request", async ({ actor, key, operation }) => {
      await unrecorded(() =>
        pool.query("DELETE FROM etl.etl_answers WHERE actor = $1 AND key = $2 AND operation = $3 AND status IS NULL", [
          actor,
          key,
          operation,
        ]),
      );
    }),
  };
}
