import { z } from "zod";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import { changesBetween, configOfVersion } from "../../domain/pipeline-version.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { idParams, pageOf, pageQuery, wholeNumber } from "../parameters.ts";
import { savedPipelineSchema } from "../pipelines/answer.ts";
import { changeConfiguration } from "../pipelines/change-configuration.ts";
import { problems } from "../problem.ts";

const tags = ["versions"];
const HIGHEST_VERSION = 999_999_999;
const versionNumber = wholeNumber(1, HIGHEST_VERSION);
const params = idParams.extend({ version: versionNumber.describe("The number of the version.") });

const head = { version: z.int(), author: z.string(), created_at: z.date() };
const listedSchema = z.object({
  ...head,
  changed_fields: z.array(z.string()).describe("What differs from the version before; empty for the first."),
});
const versionSchema = z.object({ ...head, config: z.record(z.string(), z.unknown()) });
const diffSchema = z.object({
  version: z.int(),
  with: z.int().describe("The version it is compared with."),
  changes: z.array(z.object({ field: z.string(), before: z.unknown(), after: z.unknown() })),
});

const operations = {
  listVersions: {
    tags,
    operationId: "listVersions",
    summary: "List the versions of a pipeline, newest first",
    params: idParams,
    querystring: pageQuery,
    response: { 200: answer("A page of versions.", pageOf(listedSchema)), ...problems(404, 422) },
  },
  getVersion: {
    tags,
    operationId: "getVersion",
    summary: "Read a version",
    params,
    response: { 200: answer("The whole configuration as it was.", versionSchema), ...problems(404) },
  },
  diffVersions: {
    tags,
    operationId: "diffVersions",
    summary: "Compare a version with another",
    params,
    querystring: z.strictObject({
      with: versionNumber.optional().describe("The other version; the one before, if it is left out."),
    }),
    response: { 200: answer("Every field that differs.", diffSchema), ...problems(404, 422) },
  },
  restoreVersion: {
    tags,
    operationId: "restoreVersion",
    summary: "Make a version the present configuration",
    description:
      "It becomes a new version, under the same rules as any change. Nothing happens where nothing differs. If-Match is heeded.",
    params,
    response: { 200: answer("The pipeline as it is now.", savedPipelineSchema), ...problems(404, 409, 412, 422) },
  },
};

export function versionRoutes(api: Api, parts: ApiParts): void {
  const { store } = parts;

  api.get("/pipelines/:id/versions", { schema: operations.listVersions }, async ({ params, query }) => {
    const { id } = await store.pipelines.get(params.id);
    const { items, next } = await store.versions.list(id, query);
    return {
      items: items.map(({ version, previous }) => ({
        version: version.version,
        author: version.author,
        created_at: version.created_at,
        changed_fields: previous === null ? [] : changesBetween(previous, version).map(({ field }) => field),
      })),
      next,
    };
  });

  api.get("/pipelines/:id/versions/:version", { schema: operations.getVersion }, async ({ params }) => {
    const { id } = await store.pipelines.get(params.id);
    return store.versions.get(id, params.version);
  });

  api.get("/pipelines/:id/versions/:version/diff", { schema: operations.diffVersions }, async ({ params, query }) => {
    const { id } = await store.pipelines.get(params.id);
    const version = await store.versions.get(id, params.version);
    // The first version has none before it; compared with itself it differs in nothing.
    const other = await store.versions.get(id, query.with ?? Math.max(1, params.version - 1));
    return { version: version.version, with: other.version, changes: changesBetween(other, version) };
  });

  api.post(
    "/pipelines/:id/versions/:version/restore",
    { schema: operations.restoreVersion },
    async (request, reply) => {
      const { params } = request;
      const { id } = await store.pipelines.get(params.id);
      const config = configOfVersion(await store.versions.get(id, params.version));
      if (config === undefined) {
        throw new VitrinaError("VERSION_NOT_RESTORABLE", `Version ${params.version} does not fit the rules of today.`);
      }
      return changeConfiguration(parts, request, reply, id, config);
    },
  );
}
