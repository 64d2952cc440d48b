import type { FastifySchema } from "fastify";
import { ACCESS } from "../access-table.ts";
import { problems } from "../problem.ts";

/** Adds to the documentation of an operation what the guard may answer, and the role that it asks for. */
export function describeAccess<T extends FastifySchema>(schema: T): T {
  const { operationId, description, response } = schema as {
    operationId?: string;
    description?: string;
    response?: object;
  };
  const access = operationId === undefined ? undefined : ACCESS[operationId];
  if (access === undefined) return schema;
  if (access === "anyone") return { ...schema, security: [], response: { ...response, ...problems(429) } };
  return {
    ...schema,
    description: [description, `Needs the role ${access}.`].filter(Boolean).join(" "),
    security: [{ bearer: [] }],
    response: { ...response, ...problems(401, 403, 429) },
    "x-required-role": access,
  };
}
