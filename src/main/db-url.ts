import { VitrinaError } from "../domain/error-catalogue.ts";
import { embeddedDatabaseUrl } from "../embedded-postgres/database-url.ts";
import type { Settings } from "../settings/settings.ts";

export async function databaseUrl(settings: Settings): Promise<string> {
  const url = settings.databaseUrl ?? (await embeddedDatabaseUrl(settings.dataDir));
  if (url !== undefined) return url;
  throw new VitrinaError("DATABASE_UNAVAILABLE", `No embedded PostgreSQL runs on ${settings.dataDir}.`, {
    hint: "Start it with npm start in this folder; with a database of your own, set DATABASE_URL here, too.",
  });
}
