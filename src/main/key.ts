import { type Command, Option } from "commander";
import { ROLES } from "../domain/access.ts";
import type { AuditOrigin } from "../domain/audit.ts";
import { VitrinaError } from "../domain/error-catalogue.ts";
import type { MetaStore } from "../meta-store/meta-store.ts";

const KEYS_PER_PAGE = 200;

/**
 * Manages keys directly in the meta-store, without the API: this is how the first key is made. It gives nothing away,
 * because whoever has the database's URL could write them anyway.
 */
export function addKeyCommands(program: Command): void {
  const key = program.command("key").description("make, list and revoke the API's keys, straight in the database");
  key
    .command("create")
    .description("make a key and print it, alone, on standard output; it cannot be shown again")
    .requiredOption("--name <name>", "who or what uses it")
    .addOption(new Option("--role <role>", "what it may do").choices(ROLES).makeOptionMandatory())
    .option("--expires-in <time>", "such as 30m, 12h or 90d; without it the key is valid until it is revoked")
    .action(createKey);
  key.command("list").description("list the keys, newest first").action(listKeys);
  key.command("revoke <id>").description("revoke a key; it is refused from the next request on").action(revokeKey);
}

async function createKey(options: { name: string; role: string; expiresIn?: string }): Promise<void> {
  const { newKeySchema } = await import("../domain/api-key.ts");
  const { name, role, expiresIn } = options;
  const wanted = newKeySchema.safeParse({ name, role, ...(expiresIn !== undefined && { expires_in: expiresIn }) });
  if (!wanted.success) {
    const mistakes = wanted.error.issues.map(
      ({ path, message }) => `--${path.join("-").replace("_", "-")}: ${message}`,
    );
    throw new VitrinaError("INVALID_REQUEST", mistakes.join(" "), { hint: "See vitrina key create --help." });
  }
  const created = await changing("createKey", (store) => store.keys.create(wanted.data, "cli"));
  console.error(`Key ${created.id} for "${created.name}" with the role ${created.role}. It is shown only this once:`);
  console.log(created.key);
}

async function listKeys(): Promise<void> {
  await withStore(async (store) => {
    let after: string | undefined;
    do {
      const page = await store.keys.list({ limit: KEYS_PER_PAGE, after });
      for (const { id, role, name, revoked_at, expires_at } of page.items) {
        const end = revoked_at ?? expires_at;
        const word = revoked_at === null ? "expires" : "revoked";
        console.log(
          [id, role.padEnd(8), name, end === null ? "" : `${word} ${end.toISOString()}`].join("  ").trimEnd(),
        );
      }
      after = page.next ?? undefined;
    } while (after !== undefined);
  });
}

async function revokeKey(id: string): Promise<void> {
  const { name } = await changing("revokeKey", (store) => store.keys.revoke(id));
  console.error(`Key ${id} ("${name}") is revoked.`);
}

function changing<T>(action: string, work: (store: MetaStore) => Promise<T>): Promise<T> {
  const nowhere = { key_id: null, ip: null, object: null, http_status: null, request_id: null };
  const origin: AuditOrigin = { actor: "cli", role: "admin", action, ...nowhere };
  return withStore((store) => store.audit.recording(origin, () => work(store)));
}

async function withStore<T>(work: (store: MetaStore) => Promise<T>): Promise<T> {
  const [{ loadSettings }, { openStore }, { embeddedDatabaseUrl }] = await Promise.all([
    import("../settings/settings.ts"),
    import("./database.ts"),
    import("../embedded-postgres/database-url.ts"),
  ]);
  const settings = loadSettings();
  const adminUrl = settings.databaseUrl ?? (await embeddedDatabaseUrl(settings.dataDir));
  const store = openStore(settings.databaseUrls(adminUrl), "key", 1);
  try {
    await store.checkReady();
    return await work(store);
  } finally {
    await store.close();
  }
}
