import { VitrinaError } from "../../domain/error-catalogue.ts";
import { type BulkLines, Superseded } from "./bulk.ts";
import type { SearchClient } from "./client.ts";
import { isPassing, isYes, reasonOf, refusal, unavailable } from "./cluster.ts";
import type { Operation } from "./documents.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import { fieldsOf, parseAroundSources } from "./raw-json.ts";

/**
 * Keeps the fields of a document that others added: reads it, and writes it back with the fields of the row over them,
 * provided nobody has written it since. A late writer, another program or a runner that lost the pipeline, finds that
 * the document is no longer the one it read, and changes nothing.
 *
 * The document is written even if nothing would change: only then is a late write too late for it.
 *
 * A document whose row is gone is deleted as it is, with the fields of others, if nobody has written it since it was read.
 */
export function mergingLines(client: SearchClient): BulkLines {
  return {
    conflict: "read again",
    async of(alias, operations) {
      const found = await readDocuments(client, alias, operations);
      if (found instanceof VitrinaError) return found;
      return operations.map((operation, index) => mergedLines(operation, found[index]));
    },
  };
}

/** A document as it is at this moment, even if no search finds it yet. */
interface FoundDocument {
  readonly source: string;
  readonly seqNo: number;
  readonly primaryTerm: number;
}

function mergedLines({ id, document, lines }: Operation, found: FoundDocument | undefined): string {
  if (found === undefined) return document === undefined ? lines : bulkLines({ create: { _id: id } }, document);
  const { source, seqNo, primaryTerm } = found;
  const asRead = { _id: id, if_seq_no: seqNo, if_primary_term: primaryTerm };
  if (document === undefined) return `${JSON.stringify({ delete: asRead })}\n`;
  return bulkLines({ index: asRead }, mergeFields(document, source));
}

const bulkLines = (head: object, document: string): string => `${JSON.stringify(head)}\n${document.trimEnd()}\n`;

/** A field of the row replaces the whole value: what was taken out of an object of the source must go here, too. */
function mergeFields(document: string, found: string): string {
  const own = fieldsOf(document);
  const names = new Set(own.map(({ name }) => name));
  const others = fieldsOf(found).filter(({ name }) => !names.has(name));
  const text = [...own, ...others].map(({ name, value }) => `${JSON.stringify(name)}:${value}`).join(",");
  // A document is one line here; line breaks that others wrote can only be between values.
  return `{${text.replace(/[\r\n]+/g, " ")}}`;
}

interface RawDocument {
  readonly _id?: string;
  readonly found?: boolean;
  readonly _seq_no?: number;
  readonly _primary_term?: number;
  readonly _source?: number;
  readonly error?: unknown;
}

async function readDocuments(
  client: SearchClient,
  alias: string,
  operations: readonly Operation[],
): Promise<readonly (FoundDocument | undefined)[] | VitrinaError> {
  const what = `read from ${alias}`;
  const body = { ids: operations.map(({ id }) => id) };
  const answer = await client
    .send({ method: "POST", path: `/${alias}/_mget`, body, asText: true })
    .catch((error: unknown) => unavailable(error, what));
  if (answer instanceof VitrinaError) return answer;
  if (answer.status === 404) throw new Superseded(reasonOf(answer.body));
  if (!isYes(answer.status)) {
    const failure = refusal(answer, what);
    if (answer.status === 413 || isPassing(answer)) return failure;
    throw failure;
  }
  const { parsed, sources } = parseAroundSources(answer.body as string);
  const { docs = [] } = parsed as { docs?: readonly RawDocument[] };
  if (docs.length !== operations.length || docs.some(({ _id }, index) => _id !== operations[index]?.id)) {
    return new VitrinaError(
      SEARCH_ERRORS.SEARCH_UNAVAILABLE,
      `Could not ${what}: the answer is about other documents.`,
    );
  }
  const failed = docs.find(({ error }) => error !== undefined);
  if (failed === undefined) return docs.map((one) => parseDocument(one, sources, alias));
  const reason = reasonOf(failed);
  if (reason.startsWith("index_not_found_exception")) throw new Superseded(reason);
  return new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, `Could not ${what}: ${reason}.`);
}

function parseDocument(
  { found, _seq_no, _primary_term, _source = -1 }: RawDocument,
  sources: readonly string[],
  alias: string,
): FoundDocument | undefined {
  if (found !== true) return undefined;
  const source = sources[_source];
  if (source !== undefined && _seq_no !== undefined && _primary_term !== undefined) {
    return { source, seqNo: _seq_no, primaryTerm: _primary_term };
  }
  throw new VitrinaError(
    SEARCH_ERRORS.INDEX_DIFFERS,
    `The index behind ${alias} keeps no _source, so nothing can be merged.`,
    {
      hint: "Set target_options.write to replace, or build an index that keeps the source of its documents.",
    },
  );
}
