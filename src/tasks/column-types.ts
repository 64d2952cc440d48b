import { VitrinaError } from "../domain/error-catalogue.ts";
import type { Column } from "../domain/row.ts";

/** Short type names that task authors write, and what `format_type` prints for them; so that there is one name per type. */
const LONG_NAMES: Readonly<Record<string, string>> = {
  int: "integer",
  int2: "smallint",
  int4: "integer",
  int8: "bigint",
  bool: "boolean",
  float: "double precision",
  float4: "real",
  float8: "double precision",
  decimal: "numeric",
  varchar: "character varying",
  timestamp: "timestamp without time zone",
  timestamptz: "timestamp with time zone",
  time: "time without time zone",
  timetz: "time with time zone",
};

const TYPE = /^([a-z0-9_ ]+?)(\([-\d, ]*\))?( with(?:out)? time zone)?(\[\])*$/;

/** `varchar(10)[]` → `character varying(10)[]`. A type of the user's own stays as it is. */
export function canonicalType(type: string): string {
  const text = type.trim();
  const [, name, modifier = "", zone = "", array = ""] = TYPE.exec(text.toLowerCase()) ?? [];
  if (name === undefined) return text;
  const [first = "", ...words] = (zone === "" ? (LONG_NAMES[name] ?? name) : name + zone).split(" ");
  const isTime = first.startsWith("time");
  const rest = words.length === 0 ? "" : ` ${words.join(" ")}`;
  const bare = isTime
    ? `${first}${modifier.replaceAll(" ", "")}${rest}`
    : `${first}${rest}${modifier.replaceAll(" ", "")}`;
  return bare + array;
}

/** `numeric(7,2)` → `numeric`. */
export function withoutModifier(type: string): string {
  return type.replace(/\([-\d,]*\)/, "");
}

/** What a type's name may contain, such as `numeric(5,-2)`; the type becomes part of a CREATE TABLE. */
const TYPE_TEXT = /^(?:"(?:[^"\0]|"")+"|[\p{L}\p{N}_$ .(),[\]]|-(?=\d))+$/u;

/** Refuses columns from which no target could be created. */
export function checkColumns(task: string, columns: readonly Column[]): readonly Column[] {
  const refuse = (problem: string): never => {
    throw new VitrinaError("TASK_RESULT_INVALID", `The columns of task ${task} cannot be used: ${problem}.`);
  };
  if (columns.length === 0) refuse("there are none");
  const seen = new Set<string>();
  return columns.map(({ name, type }) => {
    if (typeof name !== "string" || name === "") return refuse("one has no name");
    if (typeof type !== "string" || !TYPE_TEXT.test(type)) return refuse(`"${name}" has no PostgreSQL type`);
    if (seen.has(name)) return refuse(`"${name}" appears twice`);
    seen.add(name);
    return { name, type: canonicalType(type) };
  });
}
