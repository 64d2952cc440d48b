/**
 * Turns the OpenAPI document of this API into TypeScript: `src/cli/api-types.ts`. It knows only what our own routes
 * use. The known generators need the compiler's JavaScript interface, which TypeScript 7 does not have.
 */

interface Schema {
  readonly $ref?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly prefixItems?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const HEADER = `// Made by scripts/api-types.ts from /openapi.json; do not edit. To regenerate it:
//   UPDATE_API_TYPES=1 npx vitest run tests/cli/api-types.test.ts
`;

export function apiTypes({ paths, components }: OpenApiDocument): string {
  const operations = Object.entries(paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
    .sort((a, b) => (a.operation.operationId < b.operation.operationId ? -1 : 1));
  const routes = operations.map(
    ({ path, method, operation }) =>
      `  ${operation.operationId}: { method: "${method.toUpperCase()}", path: "${path}" },`,
  );
  return [
    HEADER,
    ...Object.entries(components.schemas).map(([name, schema]) => `export type ${name} = ${typeOf(schema, "")};\n`),
    "export interface Operations {",
    ...operations.map(({ operation }) => operationType(operation)),
    "}\n",
    "export const ROUTES = {",
    ...routes,
    "} as const satisfies Readonly<Record<keyof Operations, { readonly method: string; readonly path: string }>>;",
    "",
  ].join("\n");
}

function operationType(operation: Operation): string {
  const { operationId, summary, requestBody } = operation;
  const body = requestBody?.content["application/json"]?.schema;
  const parts = [
    ...parametersType(operation, "path", "params"),
    ...parametersType(operation, "query", "query"),
    ...(body ? [`body${requestBody?.required === true ? "" : "?"}: ${typeOf(body, "    ")};`] : []),
    `answer: ${answerType(operation)};`,
  ];
  return `${comment(summary, "  ")}  ${operationId}: {\n${parts.map((part) => `    ${part}\n`).join("")}  };`;
}

function parametersType({ parameters = [] }: Operation, place: string, name: string): string[] {
  const found = parameters.filter((parameter) => parameter.in === place);
  if (found.length === 0) return [];
  const required = found.filter((parameter) => parameter.required === true).map((parameter) => parameter.name);
  const properties = Object.fromEntries(
    found.map(({ name, description, schema }) => [name, { ...schema, ...(description && { description }) }]),
  );
  const type = typeOf({ type: "object", properties, required, additionalProperties: false }, "    ");
  return [`${name}${required.length === 0 ? "?" : ""}: ${type};`];
}

/** Only of success: problems look alike everywhere. */
function answerType({ responses }: Operation): string {
  const contents = Object.entries(responses)
    .filter(([status]) => status.startsWith("2"))
    .map(([, { content }]) => content);
  const types = contents.map((content) => {
    if (content === undefined || Object.keys(content).length === 0) return "undefined";
    const schema = content["application/json"]?.schema;
    return schema === undefined ? "string" : typeOf(schema, "    ");
  });
  return [...new Set(types)].join(" | ");
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return schema.$ref.replace("#/components/schemas/", "");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return alternatives.map((one) => typeOf(one, indent)).join(" | ");
  if (schema.allOf !== undefined) return schema.allOf.map((one) => grouped(typeOf(one, indent))).join(" & ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type as string;
    case "integer":
    case "number":
      return "number";
    case "array":
      return arrayType(schema, indent);
    case "object":
      return objectType(schema, indent);
    case undefined:
      return "unknown";
    default:
      throw new Error(`The type ${String(schema.type)} of the OpenAPI document is not known to scripts/api-types.ts.`);
  }
}

function arrayType({ prefixItems, items }: Schema, indent: string): string {
  if (prefixItems !== undefined) return `readonly [${prefixItems.map((item) => typeOf(item, indent)).join(", ")}]`;
  return `readonly ${grouped(typeOf(items ?? {}, indent))}[]`;
}

function objectType({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = `${indent}  `;
  const isOpen = additionalProperties !== undefined && additionalProperties !== false;
  const rest = additionalProperties === true || !isOpen ? "unknown" : typeOf(additionalProperties as Schema, inner);
  const entries = Object.entries(properties);
  if (entries.length === 0) return `Readonly<Record<string, ${rest}>>`;
  const lines = entries.map(([name, schema]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const optional = required.includes(name) ? "" : "?";
    return `${comment(schema.description, inner)}${inner}readonly ${key}${optional}: ${typeOf(schema, inner)};`;
  });
  if (isOpen) lines.push(`${inner}readonly [other: string]: ${rest};`);
  return `{\n${lines.join("\n")}\n${indent}}`;
}

function grouped(type: string): string {
  const isSimple = type.startsWith("{") || !/^readonly | [|&] /.test(type);
  return isSimple ? type : `(${type})`;
}

function comment(text: string | undefined, indent: string): string {
  return text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /").replaceAll("\n", " ")} */\n`;
}
