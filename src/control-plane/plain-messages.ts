import { z } from "zod";

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
export function plainMessage(issue: z.core.$ZodRawIssue): string {
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
