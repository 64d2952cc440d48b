import { ROLES, type Role } from "../../src/domain/access.ts";
import { type Answer, bearer, JSON_TYPE, type TestApi } from "./api-client.ts";

export const LOGIN_REQUIRED = {
  API_AUTH: "required",
  API_RATE_LIMIT_PER_MINUTE: "0",
  API_FAILED_LOGINS_PER_MINUTE: "0",
};

/** A key for each role. */
export async function makeKeys(api: TestApi): Promise<Record<Role, string>> {
  const made = await Promise.all(
    ROLES.map(async (role) => [role, (await api.store.keys.create({ name: role, role }, "test")).key] as const),
  );
  return Object.fromEntries(made) as Record<Role, string>;
}

/** Keys that were valid once, and one that never was. */
export async function makeBadKeys(api: TestApi): Promise<Record<"bad" | "expired" | "revoked", string>> {
  const expired = await api.store.keys.create({ name: "expired", role: "admin", expires_in: "1m" }, "test");
  await api.database.query(
    "UPDATE etl.api_keys SET created_at = now() - interval '1 day', expires_at = now() - interval '1 second' WHERE id = $1",
    [expired.id],
  );
  const revoked = await api.store.keys.create({ name: "revoked", role: "admin" }, "test");
  await api.store.keys.revoke(revoked.id);
  return {
    bad: `${revoked.key.slice(0, -1)}${revoked.key.endsWith("A") ? "B" : "A"}`,
    expired: expired.key,
    revoked: revoked.key,
  };
}

/** A request with this key; `undefined`: without one. */
export function sendAs(
  api: TestApi,
  key: string | undefined,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  return api.send(path, {
    method,
    headers: { ...(key !== undefined && bearer(key)), ...(body !== undefined && JSON_TYPE) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}
