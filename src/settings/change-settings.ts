import type { ChangesFrom } from "../domain/follow.ts";
import { wholeNumber } from "../domain/setting-fields.ts";
import type { Environment } from "./environment.ts";

/** SOURCE_<NAME>_CHANGES and SOURCE_<NAME>_SLOT_KEEP_MIB: how a source tells of its changes. */

const CHANGES = /^SOURCE_([A-Z][A-Z0-9_]*)_CHANGES$/;
/** What PostgreSQL allows for a slot; it begins with a letter, because the publication has the same name. */
const SLOT = /^slot:([a-z][a-z0-9_]{0,62})$/;
const KEEP_MIB = wholeNumber(64, 1_000_000).default(8192);

export function readChangeSettings(
  environment: Environment,
  connections: ReadonlySet<string>,
): { readonly changes: ReadonlyMap<string, ChangesFrom>; readonly mistakes: readonly string[] } {
  const changes = new Map<string, ChangesFrom>();
  const mistakes: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    const prefix = CHANGES.exec(name)?.[1];
    if (prefix === undefined || value === undefined) continue;
    const connection = prefix.toLowerCase();
    if (!connections.has(connection)) mistakes.push(`${name} is set, and there is no SOURCE_${prefix}_URL`);
    if (value === "table") continue;
    const slot = SLOT.exec(value)?.[1];
    if (slot === undefined) {
      mistakes.push(`${name} is not table or slot:<name>, where the name has small letters, digits and _`);
      continue;
    }
    const keepName = `SOURCE_${prefix}_SLOT_KEEP_MIB`;
    const keep = KEEP_MIB.safeParse(environment[keepName]);
    if (keep.success) changes.set(connection, { kind: "slot", name: slot, keepBytes: keep.data * 1024 * 1024 });
    else mistakes.push(`${keepName} ${keep.error.issues[0]?.message}`);
  }
  return { changes, mistakes };
}
