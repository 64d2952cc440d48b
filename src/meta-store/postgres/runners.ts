import type { Pool } from "../../postgres/connection.ts";
import type { RunnerInfo } from "../meta-store.ts";

export async function registerRunner(pool: Pool, runner: RunnerInfo): Promise<void> {
  await pool.query("INSERT INTO etl.etl_runners (id, hostname, pid, version) VALUES ($1, $2, $3, $4)", [
    runner.id,
    runner.hostname,
    runner.pid,
    runner.version,
  ]);
}

export async function markRunnerSeen(pool: Pool, runnerId: string): Promise<void> {
  await pool.query("UPDATE etl.etl_runners SET last_seen_at = clock_timestamp() WHERE id = $1", [runnerId]);
}

export async function markRunnerStopped(pool: Pool, runnerId: string): Promise<void> {
  await pool.query(
    "UPDATE etl.etl_runners SET last_seen_at = clock_timestamp(), stopped_at = clock_timestamp() WHERE id = $1",
    [runnerId],
  );
}
