import { z } from "zod";
import { pipelineConfigSchema, taskSchema } from "../../domain/pipeline.ts";
import { registeredTaskSchema } from "../../domain/runner.ts";
import type { Api, ApiParts } from "../api.ts";
import { answer } from "../openapi.ts";
import { idParams } from "../parameters.ts";
import { savedPipelineSchema } from "../pipelines/answer.ts";
import { changeConfiguration } from "../pipelines/change-configuration.ts";
import { problems } from "../problem.ts";

const tags = ["tasks"];
const params = idParams;

const planSchema = z.object({ items: z.array(taskSchema) });

const operations = {
  listTasks: {
    tags,
    operationId: "listTasks",
    summary: "List the code tasks that runners have registered",
    description: "Runners tell at their start; a task that no living runner has is not listed.",
    response: { 200: answer("Every code task.", z.object({ items: z.array(registeredTaskSchema) })), ...problems(503) },
  },
  getPipelineTasks: {
    tags,
    operationId: "getPipelineTasks",
    summary: "Read the task plan of a pipeline",
    params,
    response: { 200: answer("The tasks in their order; none: source_query alone.", planSchema), ...problems(404) },
  },
  replacePipelineTasks: {
    tags,
    operationId: "replacePipelineTasks",
    summary: "Replace the whole task plan",
    description:
      "The same as a change of tasks by PATCH. Whether the named tasks exist is not asked here: a runner may come later.",
    params,
    body: z.strictObject({ tasks: pipelineConfigSchema.shape.tasks.unwrap() }),
    response: {
      200: answer("The pipeline as it is now.", savedPipelineSchema),
      ...problems(400, 404, 409, 412, 413, 415, 422),
    },
  },
};

export function taskRoutes(api: Api, parts: ApiParts): void {
  const { store } = parts;

  api.get("/tasks", { schema: operations.listTasks }, async () => ({ items: await store.runners.listTasks() }));

  api.get("/pipelines/:id/tasks", { schema: operations.getPipelineTasks }, async ({ params }) => ({
    items: (await store.pipelines.get(params.id)).tasks,
  }));

  api.put("/pipelines/:id/tasks", { schema: operations.replacePipelineTasks }, (request, reply) =>
    changeConfiguration(parts, request, reply, request.params.id, { tasks: request.body.tasks }),
  );
}
