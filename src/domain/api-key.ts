import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { ROLES } from "./access.ts";

/** Keys of the API: `vitrina_<id>_<secret>`. The id is public; of the secret only a hash is kept. */

const SECRET_BYTES = 32;
/** The secret is 32 bytes in base64url, which has underscores of its own; the id has none. */
const KEY = /^vitrina_(?<id>[0-9a-f]{12})_(?<secret>[\w-]{43})$/;

export const KEY_PREFIX = "vitrina_";

export interface KeyText {
  readonly id: string;
  readonly secret: string;
}

/** `randomBytes` gives that many random bytes. */
export function makeKey(randomBytes: (count: number) => Buffer): KeyText {
  return { id: randomBytes(6).toString("hex"), secret: randomBytes(SECRET_BYTES).toString("base64url") };
}

export function formatKey({ id, secret }: KeyText): string {
  return `${KEY_PREFIX}${id}_${secret}`;
}

export function parseKey(text: string): KeyText | undefined {
  return KEY.exec(text)?.groups as KeyText | undefined;
}

export function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

/** In constant time, so that the response time reveals nothing about the hash. */
export function isSecretOf(hash: Buffer, secret: string): boolean {
  return timingSafeEqual(hash, hashSecret(secret));
}

const keyName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,62}$/,
    "A name starts with a letter or digit and has up to 63 letters, digits, spaces, dots, dashes, underscores and @.",
  )
  .describe("Who or what uses the key; the audit log shows it.");

const SECONDS = { m: 60, h: 3600, d: 86_400 } as const;
const LONGEST_VALIDITY_SECONDS = 3650 * SECONDS.d;
const DURATION = /^(\d{1,6})([mhd])$/;

/** `90d`, `12h`, `30m`. */
export function parseLifetime(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text) ?? [];
  if (count === undefined) return undefined;
  const seconds = Number(count) * SECONDS[unit as keyof typeof SECONDS];
  return seconds > 0 && seconds <= LONGEST_VALIDITY_SECONDS ? seconds : undefined;
}

export const newKeySchema = z
  .strictObject({
    name: keyName,
    role: z.enum(ROLES),
    expires_in: z
      .string()
      .refine((text) => parseLifetime(text) !== undefined, "It must be like 30m, 12h or 90d, and at most 3650 days.")
      .optional()
      .describe("How long the key is valid, such as 30m, 12h or 90d. Without it and expires_at: until revoked."),
    expires_at: z.iso.datetime({ offset: true, error: "It must be a time such as 2030-01-31T12:00:00Z." }).optional(),
  })
  .refine((key) => key.expires_in === undefined || key.expires_at === undefined, {
    path: ["expires_at"],
    message: "Only one of expires_in and expires_at can be set.",
  });
export type NewApiKey = z.infer<typeof newKeySchema>;

/** A key as the API shows it: everything but the secret and its hash. */
export const apiKeySchema = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  created_at: z.date(),
  created_by: z.string(),
  expires_at: z.date().nullable(),
  last_used_at: z.date().nullable().describe("To the minute."),
  revoked_at: z.date().nullable(),
});
export type ApiKey = z.infer<typeof apiKeySchema>;
