import { randomBytes } from "node:crypto";
import { z } from "zod";
import { apiKeySchema, formatKey, hashSecret, makeKey, parseLifetime } from "../../domain/api-key.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { KeyStore } from "../ports/access.ts";
import { asking } from "./asking.ts";
import { noteSubject } from "./audit.ts";
import { pageOf } from "./pages.ts";
import { decodeRow, rowOf, rowsOf } from "./rows.ts";

const KEY_COLUMNS = "k.id, k.name, k.role, k.created_at, k.created_by, k.expires_at, k.last_used_at, k.revoked_at";

const storedKeyRow = apiKeySchema.pick({ name: true, role: true }).extend({
  secretHash: z.instanceof(Buffer),
  revoked: z.boolean(),
  expired: z.boolean(),
  useNoted: z.boolean(),
});

export function keyStore(pool: Pool): KeyStore {
  return {
    create: asking("create the key", async (key, author) => {
      const made = makeKey(randomBytes);
      const lifetime = key.expires_in === undefined ? undefined : parseLifetime(key.expires_in);
      noteSubject(made.id, key.name, { role: key.role });
      const { rows } = await pool.query(
        `INSERT INTO etl.api_keys AS k (id, name, role, secret_sha256, created_by, expires_at)
         VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, clock_timestamp() + $7 * interval '1 second'))
         RETURNING ${KEY_COLUMNS}`,
        [made.id, key.name, key.role, hashSecret(made.secret), author, key.expires_at ?? null, lifetime ?? null],
      );
      return { ...decodeRow(apiKeySchema, rows[0]), key: formatKey(made) };
    }),

    /** Newest first, also those that are no longer valid. */
    list: asking("list the keys", async (page) => {
      const found = await pool.query(
        `SELECT ${KEY_COLUMNS} FROM etl.api_keys k
          WHERE $1::text IS NULL
             OR (k.created_at, k.id) < (SELECT l.created_at, l.id FROM etl.api_keys l WHERE l.id = $1)
          ORDER BY k.created_at DESC, k.id DESC LIMIT $2`,
        [page.after ?? null, page.limit + 1],
      );
      return pageOf(rowsOf(apiKeySchema, found), page, ({ id }) => id);
    }),

    revoke: asking("revoke the key", async (id) => {
      const key = rowOf(
        apiKeySchema,
        await pool.query(`SELECT ${KEY_COLUMNS} FROM etl.api_keys k WHERE k.id = $1`, [id]),
      );
      if (key === undefined) throw new VitrinaError("KEY_NOT_FOUND", `There is no key "${id}".`);
      noteSubject(id, key.name, { role: key.role });
      const revoked = await pool.query(
        `UPDATE etl.api_keys k SET revoked_at = clock_timestamp() WHERE k.id = $1 AND k.revoked_at IS NULL
         RETURNING ${KEY_COLUMNS}`,
        [id],
      );
      return rowOf(apiKeySchema, revoked) ?? key;
    }),

    find: asking("check the key", async (id) => {
      const found = await pool.query(
        `SELECT name, role, secret_sha256 AS "secretHash", revoked_at IS NOT NULL AS revoked,
                expires_at IS NOT NULL AND expires_at <= clock_timestamp() AS expired,
                last_used_at IS NOT NULL AND last_used_at > clock_timestamp() - interval '1 minute' AS "useNoted"
           FROM etl.api_keys WHERE id = $1`,
        [id],
      );
      return rowOf(storedKeyRow, found);
    }),

    markUsed: asking("note the use of the key", async (id) => {
      await pool.query(
        `UPDATE etl.api_keys SET last_used_at = clock_timestamp()
          WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`,
        [id],
      );
    }),
  };
}
