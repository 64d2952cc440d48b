import pg from "pg";
import { until } from "../support/until.ts";

/** Settings of a server that makes whoever wants it wait for a standby that never comes. Commits of others are local. */
export const WAITING = { synchronous_commit: "local", synchronous_standby_names: "nobody" };

/** A session whose transactions are committed, and seen by nobody until somebody cancels the wait. */
export class LateCommits {
  readonly #client: pg.Client;
  readonly #pid: number;
  #commit: Promise<unknown> | undefined;
  count = 0;

  private constructor(client: pg.Client, pid: number) {
    this.#client = client;
    this.#pid = pid;
  }

  static async open(url: string): Promise<LateCommits> {
    const client = new pg.Client(url);
    await client.connect();
    await client.query("SET synchronous_commit = on");
    const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
    return new LateCommits(client, Number(rows[0].pid));
  }

  get isWaiting(): boolean {
    return this.#commit !== undefined;
  }

  /** Returns when the commit waits, with what the statements did. */
  async commit(statements: readonly string[], by: pg.Client): Promise<readonly pg.QueryResult[]> {
    await this.#client.query("BEGIN");
    const results: pg.QueryResult[] = [];
    for (const sql of statements) results.push(await this.#client.query(sql));
    // Where no row was found nothing is written, and nothing waits.
    if (results.every(({ rowCount }) => rowCount === 0)) {
      await this.#client.query("COMMIT");
      return results;
    }
    this.#commit = this.#client.query("COMMIT");
    await until("the commit waits for a standby", async () => {
      const { rows } = await by.query("SELECT wait_event FROM pg_stat_activity WHERE pid = $1", [this.#pid]);
      return rows[0]?.wait_event === "SyncRep";
    });
    this.count += 1;
    return results;
  }

  /** It becomes visible. */
  async release(by: pg.Client): Promise<void> {
    await by.query("SELECT pg_cancel_backend($1)", [this.#pid]);
    await this.#commit;
    this.#commit = undefined;
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
