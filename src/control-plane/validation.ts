import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { type Problem, VitrinaError } from "../domain/error-catalogue.ts";

/** A sentence that lists hundreds of mistakes helps nobody; `errors` has them all. */
const MISTAKES_IN_A_SENTENCE = 5;
const LONGEST_POINTER_IN_A_SENTENCE = 100;

/** PostgreSQL stores neither NUL nor half of a surrogate pair. */
const UNSTORABLE = /\0|\p{Surrogate}/u;

/** Checks a part of a request with its zod schema; every mistake is reported, with its place. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  return (data: unknown) => {
    const { value, problems } = read(schema, data);
    return problems.length === 0 ? { value } : { error: refusal(httpPart, problems) };
  };
};

function read(schema: z.ZodType, data: unknown): { readonly value: unknown; readonly problems: Problem[] } {
  const result = z.safeParse(schema, data, { error: plainMessage });
  const problems = result.success ? unstorableTexts(result.data, []) : problemsOf(result.error.issues);
  return { value: result.data, problems };
}

/** What is wrong with the form of a body; the same as its refusal would list. */
export function formProblems(schema: z.ZodType, body: unknown): readonly Problem[] {
  return read(schema, body).problems;
}

function refusal(httpPart: string | undefined, problems: readonly Problem[]): VitrinaError {
  switch (httpPart) {
    case "params":
      // No id and no name is like that.
      return new VitrinaError("NOT_FOUND", "The path names nothing that could exist.", { problems });
    case "querystring":
      return invalidRequest("query", problems);
    default:
      return invalidRequest("body", problems);
  }
}

export function invalidRequest(part: "body" | "query", problems: readonly Problem[]): VitrinaError {
  const told = problems.slice(0, MISTAKES_IN_A_SENTENCE).map(inASentence);
  const untold = problems.length - told.length;
  if (untold > 0) told.push(`And ${untold} more.`);
  return new VitrinaError("INVALID_REQUEST", `The ${part} is not valid. ${told.join(" ")}`, { problems });
}

function inASentence({ pointer, message }: Problem): string {
  if (pointer === "") return message;
  const isLong = pointer.length > LONGEST_POINTER_IN_A_SENTENCE;
  return `${isLong ? `${pointer.slice(0, LONGEST_POINTER_IN_A_SENTENCE)}…` : pointer}: ${message}`;
}

/**
 * Of several mistakes of one kind in one place, such as two upper bounds, the last is the narrowest. What is said of
 * the whole only repeats what is said of its fields.
 */
function problemsOf(issues: readonly z.core.$ZodIssue[]): Problem[] {
  const found = issues.flatMap((issue) => {
    const paths = issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
    return paths.map((path) => ({ kind: issue.code, pointer: pointerTo(path), message: issue.message }));
  });
  const lastOfEach = new Map(found.map(({ kind, ...problem }) => [`${kind} ${problem.pointer}`, problem]));
  const problems = [...lastOfEach.values()];
  const ofFields = problems.filter(({ pointer }) => pointer !== "");
  return ofFields.length > 0 ? ofFields : problems;
}

/** Only data that passed its schema comes here, so the depth is bounded. */
function unstorableTexts(value: unknown, path: readonly PropertyKey[]): Problem[] {
  if (typeof value === "string" && UNSTORABLE.test(value)) {
    const message = "It contains a character that the database does not know: NUL, or half of a surrogate pair.";
    return [{ pointer: pointerTo(path), message }];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => unstorableTexts(inner, [...path, key]));
}

/** RFC 6901. */
function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Zod's own sentences speak of types and inputs; these speak to the person who wrote the request. */

const WANTED: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a JSON object",
};

const COUNTED: Readonly<Record<string, string>> = { string: "characters", array: "items" };

/** For issues that have no sentence in the schema itself. */
function plainMessage(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "It is required." : `It must be ${wanted(issue)}.`;
    case "invalid_value":
      return `It must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(String).join(", ")}.`;
    case "invalid_format":
      return issue.format === "guid" ? "It must be a UUID." : "It does not have the right form.";
    case "too_small":
      return tooSmall(issue.origin, issue.minimum);
    case "too_big":
      return `It must ${extent(issue.origin, "at most", issue.maximum)}.`;
    case "unrecognized_keys":
      return "Nothing of that name can be set here.";
    default:
      return "It is not valid.";
  }
}

function wanted({ expected, inst }: z.core.$ZodRawIssue<z.core.$ZodIssueInvalidType>): string {
  const isWhole = inst instanceof z.ZodNumber && inst.isInt;
  return WANTED[isWhole ? "int" : expected] ?? expected;
}

function tooSmall(origin: string, minimum: number | bigint): string {
  const mayNotBeEmpty = origin in COUNTED && minimum === 1;
  return mayNotBeEmpty ? "It must not be empty." : `It must ${extent(origin, "at least", minimum)}.`;
}

function extent(origin: string, bound: "at least" | "at most", limit: number | bigint): string {
  const counted = COUNTED[origin];
  return counted === undefined ? `be ${bound} ${limit}` : `have ${bound} ${limit} ${counted}`;
}
