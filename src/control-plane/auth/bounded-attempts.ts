import type { AuditedAttempt } from "../../domain/audit.ts";
import type { MetaStore } from "../../meta-store/meta-store.ts";
import type { Log } from "../../observability/log.ts";

const WINDOW_MS = 60_000;
const ENTRIES_PER_WINDOW = 100;

/**
 * Writes attempts into the audit log, but at most so many in a minute: whoever knocks all day must not fill the disk.
 * The rest is counted, and one entry tells the number. Those whom a login has named are counted apart from strangers,
 * so that noise from outside hides nothing of theirs.
 */
export class BoundedAttempts {
  readonly #store: MetaStore;
  readonly #log: Log;
  readonly #windows = new Map<string, { written: number; untold: number; timer: NodeJS.Timeout }>();
  readonly #writing = new Set<Promise<void>>();

  constructor(store: MetaStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  add(attempt: AuditedAttempt, who: "known" | "stranger"): void {
    const window = this.#windows.get(who) ?? this.#open(who);
    if (window.written >= ENTRIES_PER_WINDOW) {
      window.untold += 1;
      return;
    }
    window.written += 1;
    this.#write(attempt);
  }

  #open(who: string) {
    const timer = setTimeout(() => this.#close(who), WINDOW_MS).unref();
    const window = { written: 0, untold: 0, timer };
    this.#windows.set(who, window);
    return window;
  }

  #close(who: string): void {
    const window = this.#windows.get(who);
    this.#windows.delete(who);
    clearTimeout(window?.timer);
    if (window === undefined || window.untold === 0) return;
    const nothing = { role: null, key_id: null, ip: null, object: null, http_status: null, request_id: null };
    const details = { attempts: window.untold, by: who };
    this.#write({ ...nothing, actor: "unknown", action: "manyAttempts", outcome: "denied", details });
  }

  #write(attempt: AuditedAttempt): void {
    const writing = this.#store.audit
      .recordAttempt(attempt)
      .catch((err: unknown) => this.#log.error({ err, action: attempt.action }, "attempt not in the audit log"))
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Tells what is untold, and waits until everything is written. */
  async end(): Promise<void> {
    for (const who of [...this.#windows.keys()]) this.#close(who);
    await Promise.all(this.#writing);
  }
}
