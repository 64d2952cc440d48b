import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/embedded-postgres/start-embedded-postgres.ts";
import { createTemplate } from "./database.ts";

/**
 * A server of its own, because slots need wal_level = logical, and because each peek would decode what all other tests
 * write. Commits are not waited for, so that they are visible before they can be decoded.
 */
export interface SlotServer {
  readonly url: string;
  stop(): Promise<void>;
}

const SETTINGS = {
  fsync: "off",
  full_page_writes: "off",
  synchronous_commit: "off",
  wal_level: "logical",
  // Whatever is not written through waits as long as it can.
  wal_writer_delay: "10s",
  max_connections: "100",
  max_replication_slots: "20",
  shared_buffers: "32MB",
  autovacuum: "off",
};

export async function startSlotServer(settings: Readonly<Record<string, string>> = {}): Promise<SlotServer> {
  const dataDir = await mkdtemp(join(tmpdir(), "vitrina-slots-"));
  const native = process.env["TEST_POSTGRES_NATIVE"];
  const server: EmbeddedPostgres = await startEmbeddedPostgres({
    dataDir,
    ...(native && { binaries: { initdb: join(native, "bin", "initdb"), postgres: join(native, "bin", "postgres") } }),
    serverSettings: { ...SETTINGS, ...settings },
  });
  await createTemplate(server.url);
  return {
    url: server.url,
    async stop() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export const KEEP = { keepBytes: 1024 * 1024 * 1024 };
