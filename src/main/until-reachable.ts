import { setTimeout as delay } from "node:timers/promises";
import { VitrinaError } from "../domain/error-catalogue.ts";
import { mayPass } from "../domain/retry-policy.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";
import type { Log } from "../observability/log.ts";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Waits while the database refuses for a reason that passes, as it does when everything starts at once. What somebody
 * must put right, such as a wrong password or a missing schema, is thrown. False: told to stop meanwhile.
 */
export async function untilReachable(
  store: Pick<MetaStore, "checkReady">,
  log: Log,
  stopSignal: AbortSignal,
): Promise<boolean> {
  for (let pauseMs = FIRST_PAUSE_MS; !stopSignal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      await store.checkReady();
      return true;
    } catch (error) {
      if (!(error instanceof VitrinaError) || !mayPass(error.retry)) throw error;
      const { code, message: reason } = error;
      log.warn({ code, reason, wait_ms: pauseMs }, "the meta-store does not answer yet; waiting for it");
      await delay(pauseMs, undefined, { signal: stopSignal }).catch(() => undefined);
    }
  }
  return false;
}
