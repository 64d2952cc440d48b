import type { MetaStore } from "../meta-store/meta-store.ts";
import { migrate } from "../meta-store/migrate.ts";
import { openMetaStore } from "../meta-store/postgres/index.ts";
import { enableRoleLogins, grantSourceAccess } from "../meta-store/roles.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";

/** Everything that needs the administrator: schema, logins, grants. Idempotent. */
export async function prepareDatabase(
  settings: Settings,
  adminUrl: string,
): Promise<{ urls: DatabaseUrls; applied: string[]; readable: string[] }> {
  const urls = settings.databaseUrls(adminUrl);
  const { applied } = await migrate(adminUrl);
  const logins = [urls.reader, urls.writer, urls.meta, urls.loader].filter((url) => url !== undefined);
  await enableRoleLogins(adminUrl, logins);
  const readable = await grantSourceAccess(adminUrl, settings.sourceSchemas);
  return { urls, applied, readable };
}

export function openStore(urls: DatabaseUrls, who: string, maxConnections: number): MetaStore {
  return openMetaStore({ url: urls.meta, applicationName: `vitrina ${who}`, maxConnections });
}
