import { VitrinaError } from "../domain/error-catalogue.ts";
import { placeAfter, type TextPlace } from "../domain/text-place.ts";

/** What is wrong with a query, and where: an offset into its UTF-8 bytes, as PostgreSQL's parser counts. */
export interface GuardFinding {
  readonly offset?: number | undefined;
  /** Follows "Line 3, column 12: ", without a full stop. */
  readonly what: string;
}

/** Nobody reads more, and a query with ten thousand mistakes must not produce ten thousand sentences. */
const MOST_FINDINGS = 20;
const MOST_IN_A_SENTENCE = 5;
const LONGEST_NAME = 80;

/** Places are computed only for what is reported: each costs a pass over the text. */
export function refusal(query: string, findings: readonly GuardFinding[], cause?: unknown): VitrinaError {
  const bytes = Buffer.from(query, "utf8");
  const problems = firstDistinct(findings).map(({ offset, what }) => {
    const place = offset === undefined ? undefined : placeInBytes(bytes, offset);
    return { pointer: "", message: sentence(what, place), ...place };
  });
  const told = problems.slice(0, MOST_IN_A_SENTENCE).map(({ message }) => message);
  const untold = problems.length - told.length;
  if (untold > 0) told.push(`And ${untold} more.`);
  return new VitrinaError("QUERY_REFUSED", `The query is refused. ${told.join(" ")}`, {
    problems,
    cause,
  });
}

function firstDistinct(findings: readonly GuardFinding[]): readonly GuardFinding[] {
  const distinct = new Map<string, GuardFinding>();
  for (const finding of findings) {
    if (distinct.size === MOST_FINDINGS) break;
    distinct.set(`${finding.offset} ${finding.what}`, finding);
  }
  return [...distinct.values()];
}

function sentence(what: string, place: TextPlace | undefined): string {
  const text = place === undefined ? what : `${shownPlace(place)}: ${what}`;
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

export function placeOf(query: string, offset: number): TextPlace {
  return placeInBytes(Buffer.from(query, "utf8"), offset);
}

function placeInBytes(bytes: Buffer, offset: number): TextPlace {
  return placeAfter(bytes.subarray(0, offset).toString("utf8"));
}

export function shownPlace({ line, column }: TextPlace): string {
  return `line ${line}, column ${column}`;
}

/** PostgreSQL's messages count characters from the beginning of the text; its trees count bytes. */
export function byteOffset(query: string, characters: number): number {
  return Buffer.byteLength([...query].slice(0, characters).join(""), "utf8");
}

/** A name from somebody's query, for one of our sentences. */
export function shown(...names: readonly string[]): string {
  const text = names.map((name) => (/^[a-z_][a-z0-9_$]*$/.test(name) ? name : JSON.stringify(name))).join(".");
  return text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}…` : text;
}
