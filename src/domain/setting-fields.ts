import { z } from "zod";

/** Forms that several settings share. The message follows the name of the setting. */

export const commaList = z
  .string()
  .transform((text) => text.split(",").map((item) => item.trim()))
  .refine((items) => items.every((item) => item !== ""), "has an empty item; separate items by one comma");

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
