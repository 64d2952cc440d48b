import { isSecretOf, parseKey } from "../../domain/api-key.ts";
import type { MetaStore } from "../../meta-store/meta-store.ts";
import type { Log } from "../../observability/log.ts";
import type { Caller } from "../actor.ts";
import { badLogin } from "./bad-login.ts";

/** Asks the meta-store at each request, so that a revoked key is refused from the next request on. */
export async function logInWithKey(text: string, store: MetaStore, log: Log): Promise<Caller> {
  const given = parseKey(text);
  const found = given && (await store.keys.find(given.id));
  if (given === undefined || found === undefined || !isSecretOf(found.secretHash, given.secret)) {
    throw badLogin("The key is not known.");
  }
  // From here on the caller has the secret, and may know what became of the key.
  if (found.revoked) throw badLogin("The key was revoked.");
  if (found.expired) throw badLogin("The key has expired.");
  if (!found.useNoted) await noteUse(given.id, store, log);
  return { name: `key:${found.name}`, role: found.role, keyId: given.id };
}

/** Nobody is locked out because a note could not be written. */
async function noteUse(id: string, store: MetaStore, log: Log): Promise<void> {
  await store.keys.markUsed(id).catch((err: unknown) => log.warn({ err, key_id: id }, "use of a key not noted"));
}
