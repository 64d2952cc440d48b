import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { VersionStore } from "../ports/pipelines.ts";
import { asking } from "./asking.ts";
import { invalidPageMark } from "./pages.ts";
import { rowOf, rowsOf } from "./rows.ts";

const VERSION_COLUMNS = "v.version, v.author, v.created_at, v.config";
const versionRow = z.object({
  version: z.int(),
  author: z.string(),
  created_at: z.date(),
  config: z.record(z.string(), z.unknown()),
});

export function versionStore(pool: Pool): VersionStore {
  return {
    /** The page mark is the number of the last version. */
    list: asking("list the versions", async (id, page) => {
      if (page.after !== undefined && !/^[1-9]\d{0,8}$/.test(page.after)) throw invalidPageMark();
      const found = await pool.query(
        `SELECT ${VERSION_COLUMNS} FROM etl.etl_pipeline_versions v
          WHERE v.pipeline_id = $1 AND ($2::int IS NULL OR v.version < $2)
          ORDER BY v.version DESC LIMIT $3`,
        [id, page.after ?? null, page.limit + 1],
      );
      const versions = rowsOf(versionRow, found);
      // The row beyond the page is the one that its last version is compared with.
      const items = versions
        .slice(0, page.limit)
        .map((version, index) => ({ version, previous: versions[index + 1] ?? null }));
      return { items, next: versions.length > page.limit ? String(items.at(-1)?.version.version) : null };
    }),

    get: asking("read the version", async (id, version) => {
      const found = await pool.query(
        `SELECT ${VERSION_COLUMNS} FROM etl.etl_pipeline_versions v WHERE v.pipeline_id = $1 AND v.version = $2`,
        [id, version],
      );
      const known = rowOf(versionRow, found);
      if (known === undefined) throw new VitrinaError("VERSION_NOT_FOUND", `This pipeline has no version ${version}.`);
      return known;
    }),
  };
}
