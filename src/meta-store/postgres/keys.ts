import { randomBytes } from "node:crypto";
import { type ApiKey, formatKey, hashSecret, makeKey, type NewApiKey, parseLifetime } from "../../domain/api-key.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { CreatedKey, KeyStore, StoredKey } from "../ports/access.ts";
import type { Page, PageRequest } from "../ports/page.ts";
import { asking } from "./asking.ts";
import { noteSubject } from "./audit.ts";

const KEY_COLUMNS = "k.id, k.name, k.role, k.created_at, k.created_by, k.expires_at, k.last_used_at, k.revoked_at";

async function createKey(pool: Pool, key: NewApiKey, author: string): Promise<CreatedKey> {
  const made = makeKey(randomBytes);
  const lifetime = key.expires_in === undefined ? undefined : parseLifetime(key.expires_in);
  noteSubject(made.id, key.name, { role: key.role });
  const { rows } = await pool.query(
    `INSERT INTO etl.api_keys AS k (id, name, role, secret_sha256, created_by, expires_at)
     VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, clock_timestamp() + $7 * interval '1 second'))
     RETURNING ${KEY_COLUMNS}`,
    [made.id, key.name, key.role, hashSecret(made.secret), author, key.expires_at ?? null, lifetime ?? null],
  );
  return { ...(rows[0] as ApiKey), key: formatKey(made) };
}

/** Newest first, also those that are no longer valid. */
async function listKeys(pool: Pool, page: PageRequest): Promise<Page<ApiKey>> {
  const { rows } = await pool.query(
    `SELECT ${KEY_COLUMNS} FROM etl.api_keys k
      WHERE $1::text IS NULL
         OR (k.created_at, k.id) < (SELECT l.created_at, l.id FROM etl.api_keys l WHERE l.id = $1)
      ORDER BY k.created_at DESC, k.id DESC LIMIT $2`,
    [page.after ?? null, page.limit + 1],
  );
  const items = rows.slice(0, page.limit) as ApiKey[];
  return { items, next: rows.length > page.limit ? (items.at(-1)?.id ?? null) : null };
}

/** A key that is revoked already stays as it is. */
async function revokeKey(pool: Pool, id: string): Promise<ApiKey> {
  const found = await pool.query(`SELECT ${KEY_COLUMNS} FROM etl.api_keys k WHERE k.id = $1`, [id]);
  const key = found.rows[0] as ApiKey | undefined;
  if (key === undefined) throw new VitrinaError("KEY_NOT_FOUND", `There is no key "${id}".`);
  noteSubject(id, key.name, { role: key.role });
  const { rows } = await pool.query(
    `UPDATE etl.api_keys k SET revoked_at = clock_timestamp() WHERE k.id = $1 AND k.revoked_at IS NULL
     RETURNING ${KEY_COLUMNS}`,
    [id],
  );
  return (rows[0] as ApiKey | undefined) ?? key;
}

async function findKey(pool: Pool, id: string): Promise<StoredKey | undefined> {
  const { rows } = await pool.query(
    `SELECT name, role, secret_sha256 AS "secretHash", revoked_at IS NOT NULL AS revoked,
            expires_at IS NOT NULL AND expires_at <= clock_timestamp() AS expired,
            last_used_at IS NOT NULL AND last_used_at > clock_timestamp() - interval '1 minute' AS "useNoted"
       FROM etl.api_keys WHERE id = $1`,
    [id],
  );
  return rows[0] as StoredKey | undefined;
}

async function markKeyUsed(pool: Pool, id: string): Promise<void> {
  await pool.query(
    `UPDATE etl.api_keys SET last_used_at = clock_timestamp()
      WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`,
    [id],
  );
}

export function keyStore(pool: Pool): KeyStore {
  return {
    create: asking("create the key", (key, author) => createKey(pool, key, author)),
    list: asking("list the keys", (page) => listKeys(pool, page)),
    revoke: asking("revoke the key", (id) => revokeKey(pool, id)),
    find: asking("check the key", (id) => findKey(pool, id)),
    markUsed: asking("note the use of the key", (id) => markKeyUsed(pool, id)),
  };
}
