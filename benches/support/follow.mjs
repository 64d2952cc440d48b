// What the groups about marts that follow share: the source records its changes, and nobody starts a run by himself.
import { openSourceInspector } from "../../dist/connectors/postgres/source-inspector.js";

/** The watcher would start runs by itself; here each is started when it is to be measured. */
export const FOLLOW = { mode: "follow", follow: { check_every_seconds: 3600, full_compare_above_percent: 100 } };

export const reading = ({ readerUrl }) => ({
  url: readerUrl,
  applicationName: "bench",
  allowedSchemas: ["content"],
  readTimeoutMs: 600_000,
  timeoutMs: 600_000,
  batchBytes: 64 * 1024 * 1024,
});

/** As the owner of the source would do it. */
export async function recordChanges(world, query, key) {
  const inspector = openSourceInspector(reading(world));
  try {
    const { columns } = await inspector.examine(query);
    const plan = await inspector.followPlan({ query, columns, key, tables: {} });
    if (plan.refusals.length > 0) throw new Error(plan.refusals.map(({ message }) => message).join(" "));
    await world.admin.query(await inspector.changesScript(plan.tables, "install"));
    return { plan, columns };
  } finally {
    await inspector.close();
  }
}
