import { connect } from "../../../postgres/connection.ts";
import { databaseError } from "../../../postgres/errors.ts";
import type { FollowPlan } from "../../../sql-analysis/follow-plan.ts";
import { recordChanges } from "./install.ts";
import { watchedTables } from "./recorder.ts";

/** In a database that Vitrina owns: records the tables of a plan, beside what is recorded already. */
export async function installOwnChanges(adminUrl: string, reader: string, plan: FollowPlan): Promise<void> {
  const client = await connect({ url: adminUrl, applicationName: "vitrina follow" });
  try {
    await recordChanges(client, watchedTables(plan.tables), reader);
  } catch (error) {
    throw databaseError(error, "record the changes of the source");
  } finally {
    await client.end();
  }
}
