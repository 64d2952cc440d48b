import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { PipelineId } from "../../domain/pipeline.ts";
import type { PipelineVersion } from "../../domain/pipeline-version.ts";
import type { Pool } from "../../postgres/connection.ts";
import type { Page, PageRequest } from "../ports/page.ts";
import type { VersionStore, VersionWithPrevious } from "../ports/pipelines.ts";
import { asking } from "./asking.ts";
import { invalidPageMark } from "./page-mark.ts";

const VERSION_COLUMNS = "v.version, v.author, v.created_at, v.config";

/** Newest first. The page mark is the number of the last version. */
async function listVersions(pool: Pool, id: PipelineId, page: PageRequest): Promise<Page<VersionWithPrevious>> {
  if (page.after !== undefined && !/^[1-9]\d{0,8}$/.test(page.after)) throw invalidPageMark();
  const { rows } = await pool.query(
    `SELECT ${VERSION_COLUMNS} FROM etl.etl_pipeline_versions v
      WHERE v.pipeline_id = $1 AND ($2::int IS NULL OR v.version < $2)
      ORDER BY v.version DESC LIMIT $3`,
    [id, page.after ?? null, page.limit + 1],
  );
  const found = rows as PipelineVersion[];
  // The row beyond the page is the one that its last version is compared with.
  const items = found.slice(0, page.limit).map((version, index) => ({ version, previous: found[index + 1] ?? null }));
  return { items, next: found.length > page.limit ? String(items.at(-1)?.version.version) : null };
}

async function getVersion(pool: Pool, id: PipelineId, version: number): Promise<PipelineVersion> {
  const { rows } = await pool.query(
    `SELECT ${VERSION_COLUMNS} FROM etl.etl_pipeline_versions v WHERE v.pipeline_id = $1 AND v.version = $2`,
    [id, version],
  );
  if (rows[0] === undefined) throw new VitrinaError("VERSION_NOT_FOUND", `This pipeline has no version ${version}.`);
  return rows[0] as PipelineVersion;
}

export function versionStore(pool: Pool): VersionStore {
  return {
    list: asking("list the versions", (id, page) => listVersions(pool, id, page)),
    get: asking("read the version", (id, version) => getVersion(pool, id, version)),
  };
}
