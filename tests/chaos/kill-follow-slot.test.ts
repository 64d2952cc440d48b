import { expect } from "vitest";
import { watchedTables } from "../../src/connectors/postgres/changes/recorder.ts";
import { slotRemovalScript, slotScript } from "../../src/connectors/postgres/changes/slot/script.ts";
import {
  describeFollowKills,
  type FollowChaos,
  followKills,
  openFollowChaos,
  planOf,
} from "../support/chaos-follow.ts";
import { createTestDatabase } from "../support/database.ts";
import { startSlotServer } from "../support/slot-server.ts";
import { until } from "../support/until.ts";

/**
 * Where a slot of another server tells of the changes: it is moved while the killed ones wait, and must keep what they have
 * not seen. What a sweep does is the same as with triggers.
 */
const SLOT = "vitrina_kills";
describeFollowKills("by a slot", { ...followKills(true), sweep: [] }, openSlotChaos);

async function openSlotChaos(): Promise<FollowChaos> {
  const server = await startSlotServer();
  const shop = await createTestDatabase(server.url);
  await shop.query(`CREATE SCHEMA content; GRANT USAGE ON SCHEMA content TO vitrina_reader;
    ALTER DEFAULT PRIVILEGES IN SCHEMA content GRANT SELECT ON TABLES TO vitrina_reader`);
  const chaos = await openFollowChaos("stream");
  const environment = { SOURCE_SHOP_URL: shop.urls.reader, SOURCE_SHOP_CHANGES: `slot:${SLOT}` };
  const runner: FollowChaos["runner"] = (fault, more = {}) => chaos.runner(fault, { ...environment, ...more });
  const placeOfSlot = async (): Promise<bigint> => {
    const [slot] = await shop.query(
      `SELECT (confirmed_flush_lsn - '0/0')::text AS place FROM pg_replication_slots WHERE slot_name = '${SLOT}'`,
    );
    return BigInt(slot?.["place"] as string);
  };
  let made: bigint;
  return {
    ...chaos,
    atOnce: 1,
    runner,
    source: shop,
    createMart: (name) => chaos.createMart(name, { source_connection: "shop" }),
    async recordChanges(pipeline) {
      const { tables } = await planOf(shop.url, pipeline);
      await shop.query(slotScript({ name: SLOT, tables: watchedTables(tables), reader: "vitrina_reader" }));
      made = await placeOfSlot();
    },
    // A first position is no further than the slot: those of the comparisons to come are to be beyond the place at which it
    // was made, too.
    untilMovedOn: () =>
      until("the slot is moved a first time", async () => (await placeOfSlot()) > made).then(() => {}),
    async forgetSeen() {
      const [least] = await chaos.query(
        `SELECT min(one.lsn::pg_lsn - '0/0')::text AS place FROM etl.follow_state f
          CROSS JOIN LATERAL (VALUES (f.position ->> 'lsn'), (f.compare_position ->> 'lsn')) AS one (lsn)`,
      );
      const needed = BigInt(least?.["place"] as string);
      if (needed <= made) throw new Error("The slot has not been moved, so that nothing would be shown.");
      const watching = runner();
      await until("the slot is moved", async () => (await placeOfSlot()) >= needed);
      await watching.stop();
      expect(await placeOfSlot()).toBe(needed);
    },
    async close() {
      await chaos.close();
      await shop.query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'vitrina_reader'");
      await shop.query(slotRemovalScript(SLOT));
      await shop.drop();
      await server.stop();
    },
  };
}
