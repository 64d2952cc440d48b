import type { EngineParts } from "../data-plane/run-context.ts";
import type { DatabaseUrls, Settings } from "../settings/settings.ts";

/** The connections that lead to the database in which Vitrina keeps its own tables, and whose changes triggers record. */
export function ownConnections(settings: Settings, urls: DatabaseUrls): readonly string[] {
  const { addresses, changes } = settings.sources(urls);
  return [...addresses].flatMap(([name, address]) => (address === urls.reader && !changes.has(name) ? [name] : []));
}

/** Where Vitrina keeps its own tables, it may also record the changes of the sources beside them. */
export function ownSource(settings: Settings, urls: DatabaseUrls, adminUrl: string): EngineParts["installChanges"] {
  return async ({ source_connection }, plan) => {
    if (!ownConnections(settings, urls).includes(source_connection)) return false;
    const { installOwnChanges } = await import("../connectors/postgres/changes/install-own.ts");
    await installOwnChanges(adminUrl, decodeURIComponent(new URL(urls.reader).username), plan);
    return true;
  };
}
