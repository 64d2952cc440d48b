import { z } from "zod";

/** Forms that several settings share. The message follows the name of the setting. */

export const commaList = z
  .string()
  .transform((text) => text.split(",").map((item) => item.trim()))
  .refine((items) => items.every((item) => item !== ""), "has an empty item; separate items by one comma");

const SCHEMA = /\s*(?:"((?:[^"]|"")+)"|([^",]*[^",\s]))\s*(?:,|$)/y;

/** Each as it is, or quoted as in SQL. Undefined: it is no such list. */
function schemasIn(text: string): readonly string[] | undefined {
  const schemas: string[] = [];
  SCHEMA.lastIndex = 0;
  while (SCHEMA.lastIndex < text.length) {
    const [, quoted, plain] = SCHEMA.exec(text) ?? [];
    const schema = quoted?.replaceAll('""', '"') ?? plain;
    if (schema === undefined) return undefined;
    schemas.push(schema);
  }
  return text.trimEnd().endsWith(",") ? undefined : schemas;
}

export const schemaList = z.string().transform((text, context) => {
  const schemas = schemasIn(text);
  if (schemas !== undefined) return schemas;
  context.addIssue({ code: "custom", message: 'is not a list of schemas such as content,"Odd, shop"' });
  return z.NEVER;
});

export const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d+$/, `is not a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `is not between ${least} and ${most}`);

export function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol);
}

export function isPostgresUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, pathname } = new URL(text);
  return ["postgres:", "postgresql:"].includes(protocol) && pathname.length > 1;
}
