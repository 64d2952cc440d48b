import { z } from "zod";
import { runnerSchema } from "../../domain/runner.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { problems } from "../problem.ts";

const listRunners = {
  tags: ["runners"],
  operationId: "listRunners",
  summary: "List the runners, the living first",
  description: "Those seen within a day.",
  response: { 200: answer("The runners.", z.object({ items: z.array(runnerSchema) })), ...problems(503) },
};

export function runnerRoutes(api: Api, { store }: ApiParts): void {
  api.get("/runners", { schema: listRunners }, async () => ({ items: await store.runners.list() }));
}
