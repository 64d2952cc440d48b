import { z } from "zod";
import { auditEntrySchema } from "../../domain/audit.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { pageOf, pageQuery } from "../parameters.ts";
import { problems } from "../problem.ts";

const filter = z.string().max(200).optional();

const operations = {
  listAudit: {
    tags: ["access"],
    operationId: "listAudit",
    summary: "List who changed what, and who was refused, newest first",
    querystring: pageQuery.extend({
      after: z
        .string()
        .regex(/^\d{1,18}$/, "It must be the next of the page before.")
        .optional()
        .describe("The `next` of the page before."),
      actor: filter.describe("Only what this actor did, such as key:ci."),
      action: filter.describe("Only this operationId."),
      object: filter.describe("Only what concerns this id or name."),
    }),
    response: { 200: answer("A page of entries.", pageOf(auditEntrySchema)), ...problems(422) },
  },
};

export function auditRoutes(api: Api, { store }: ApiParts): void {
  api.get("/audit", { schema: operations.listAudit }, ({ query }) => store.audit.list(query));
}
