import { VitrinaError } from "../../domain/error-catalogue.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import type { RejectedRow } from "../sink.ts";
import type { SearchClient } from "./client.ts";
import { isPassing, isYes, reasonOf, refusal, unavailable } from "./cluster.ts";
import type { Operation, RowOperation } from "./documents.ts";
import { SEARCH_ERRORS } from "./errors.ts";
import type { Patience } from "./patience.ts";

const MOST_REQUEST_BYTES = 8 * 1024 * 1024;
const LEAST_REQUEST_BYTES = 64 * 1024;
const MOST_OPERATIONS_PER_REQUEST = 10_000;

export interface BulkResult {
  readonly created: number;
  readonly updated: number;
  readonly deleted: number;
  /** Was to be deleted, and was not there. */
  readonly absent: number;
  /** Deleted because its key came without a row; what was not there is not counted. */
  readonly gone: number;
  readonly rejects: readonly RejectedRow[];
  /** Sent again without knowing what became of it the first time: "updated" may have been "created", for example. */
  readonly uncertain: number;
}

const COUNTS = ["created", "updated", "deleted", "absent", "gone", "uncertain"] as const;
const noneYet = () => ({ created: 0, updated: 0, deleted: 0, absent: 0, gone: 0, uncertain: 0 });

/** A later claim wrote here, or took the right to write: this one has to ask whether it still holds the pipeline. */
export class Superseded extends Error {}

/** How operations become lines of a request: as they are, or together with what the index holds. */
export interface BulkLines {
  /** Called each time the operations are sent. Returns an error that may pass if it must be called again later. */
  of(alias: string, operations: readonly Operation[]): Promise<readonly string[] | VitrinaError>;
  /** What a version conflict means: a later claim wrote, or a document changed since it was read for the lines. */
  readonly conflict: "superseded" | "read again";
}

/** The document becomes what the row says, and nothing else. */
export const REPLACING: BulkLines = {
  of: async (_alias, operations) => operations.map(({ lines }) => lines),
  conflict: "superseded",
};

/**
 * Sends operations in requests that are bounded by bytes and number, and reads the result of every single one. What
 * the cluster had no room for is sent again, in smaller requests, until it is written; what it refuses is set aside.
 */
export class BulkSender {
  readonly #client: SearchClient;
  readonly #patience: Patience;
  readonly #lines: BulkLines;
  #mostBytes = MOST_REQUEST_BYTES;

  constructor(client: SearchClient, patience: Patience, lines: BulkLines) {
    this.#client = client;
    this.#patience = patience;
    this.#lines = lines;
  }

  /** `alias` must be one: an index of that name is never made by writing to it. */
  async send(alias: string, operations: readonly Operation[]): Promise<BulkResult> {
    const total = { ...noneYet(), rejects: [] as RejectedRow[] };
    const inDoubt = new Set<Operation>();
    for (let waiting = operations; waiting.length > 0; ) {
      const [portion, rest] = this.#cut(waiting);
      const outcome = await this.#sendOnce(alias, portion, inDoubt);
      if (outcome instanceof VitrinaError) {
        for (const operation of portion) inDoubt.add(operation);
        this.#shrink();
        await this.#patience.wait(outcome);
        continue;
      }
      for (const count of COUNTS) total[count] += outcome[count];
      total.rejects.push(...outcome.rejects);
      waiting = [...outcome.postponed, ...rest];
      if (outcome.trouble === undefined) {
        this.#patience.rest();
        this.#grow();
      } else {
        this.#shrink();
        await this.#patience.wait(outcome.trouble);
      }
    }
    return total;
  }

  #cut(operations: readonly Operation[]): [Operation[], readonly Operation[]] {
    let bytes = 0;
    let count = 0;
    for (const operation of operations) {
      if (count > 0 && (bytes + operation.bytes > this.#mostBytes || count === MOST_OPERATIONS_PER_REQUEST)) break;
      bytes += operation.bytes;
      count += 1;
    }
    return [operations.slice(0, count), operations.slice(count)];
  }

  #shrink(): void {
    this.#mostBytes = Math.max(LEAST_REQUEST_BYTES, this.#mostBytes / 2);
  }

  #grow(): void {
    this.#mostBytes = Math.min(MOST_REQUEST_BYTES, this.#mostBytes * 1.25);
  }

  /** An error means: nothing is known about any of the operations, and they are to be sent again. */
  async #sendOnce(
    alias: string,
    operations: readonly Operation[],
    inDoubt: Set<Operation>,
  ): Promise<Outcome | VitrinaError> {
    const what = `write to ${alias}`;
    const encoded = await this.#lines.of(alias, operations);
    if (encoded instanceof VitrinaError) return encoded;
    const guard = operations.some(({ document }) => document !== undefined) ? [] : [HELD_TO_ALIAS];
    const lines = Buffer.from([...guard, ...encoded].join(""));
    const path = `/${alias}/_bulk?require_alias=true&filter_path=${ANSWER_FIELDS}`;
    await faultPoint("bulk_ready");
    const answer = await this.#client
      .send({ method: "POST", path, lines })
      .catch((error: unknown) => unavailable(error, what));
    await faultPoint("bulk_answered");
    if (answer instanceof VitrinaError) return answer;
    if (answer.isSecondTry) for (const operation of operations) inDoubt.add(operation);
    const [only, second] = operations;
    if (answer.status === 413 && second === undefined && only !== undefined && isOfRow(only)) {
      return setAside(only, "the document is too large");
    }
    if (!isYes(answer.status)) {
      const failure = refusal(answer, what);
      if (answer.status === 413 || isPassing(answer)) return failure;
      throw failure;
    }
    return readOutcome(itemsOf(answer.body).slice(guard.length), operations, inDoubt, what, this.#lines.conflict);
  }
}

/**
 * The cluster does not hold a delete to `require_alias`: where the alias is gone, a request of nothing but deletes would
 * make an index of its name. It makes none if any operation of the request requires an alias, so this one does: it
 * changes no document, whether or not there is one of this id, and its own result is of no interest.
 */
const HELD_TO_ALIAS = '{"update":{"_id":"_vitrina"}}\n{"doc":{}}\n';

const ANSWER_FIELDS = "items.*.status,items.*.error,items.*._id,items.*.result";

interface Outcome extends BulkResult {
  readonly postponed: readonly Operation[];
  /** Why something was postponed. */
  readonly trouble: VitrinaError | undefined;
}

interface Item {
  readonly _id?: string;
  readonly status?: number;
  readonly result?: string;
  readonly error?: unknown;
}

function itemsOf(body: unknown): readonly unknown[] {
  const items = (body as { items?: unknown } | undefined)?.items;
  return Array.isArray(items) ? items : [];
}

function readOutcome(
  items: readonly unknown[],
  operations: readonly Operation[],
  inDoubt: Set<Operation>,
  what: string,
  conflict: BulkLines["conflict"],
): Outcome | VitrinaError {
  if (items.length !== operations.length) {
    return new VitrinaError(
      SEARCH_ERRORS.SEARCH_UNAVAILABLE,
      `Could not ${what}: the answer does not cover every document.`,
    );
  }
  const outcome = { ...noneYet(), rejects: [] as RejectedRow[] };
  const postponed: Operation[] = [];
  let trouble: VitrinaError | undefined;
  let conflicts = 0;
  for (const [index, operation] of operations.entries()) {
    const item = Object.values(items[index] as Record<string, Item>)[0] ?? {};
    const status = item.status ?? 0;
    if (item._id !== operation.id || (item.error === undefined && item.result === undefined)) {
      return new VitrinaError(
        SEARCH_ERRORS.SEARCH_UNAVAILABLE,
        `Could not ${what}: the answer is about other documents.`,
      );
    }
    // The shard, or its node, failed: with or without the document.
    if (status >= 500) inDoubt.add(operation);
    const count = COUNT_OF_RESULT[item.result ?? ""];
    if (count !== undefined && !isOfRow(operation)) outcome.gone += count === "deleted" ? 1 : 0;
    else if (count !== undefined) {
      outcome[count] += 1;
      if (inDoubt.has(operation)) outcome.uncertain += 1;
    } else if (isPassing({ status, body: item })) {
      postponed.push(operation);
      trouble = refusal({ status, body: item }, what);
    } else if ((status === 400 || status === 413) && isOfRow(operation)) {
      outcome.rejects.push(rejected(operation, reasonOf(item)));
    } else if (status === 409 && conflict === "read again") {
      postponed.push(operation);
      conflicts += 1;
    } else if (status === 409 || status === 404) throw new Superseded(reasonOf(item));
    else if (status >= 500) {
      postponed.push(operation);
      trouble = new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, refusal({ status, body: item }, what).message);
    } else throw refusal({ status, body: item }, what);
  }
  // That others write these documents meanwhile is not a failure, as long as some of ours get through.
  if (conflicts === operations.length) trouble = changedMeanwhile(what);
  return { ...outcome, postponed, trouble };
}

const COUNT_OF_RESULT: Readonly<Record<string, "created" | "updated" | "deleted" | "absent">> = {
  created: "created",
  updated: "updated",
  noop: "updated",
  deleted: "deleted",
  not_found: "absent",
};

const changedMeanwhile = (what: string): VitrinaError =>
  new VitrinaError(SEARCH_ERRORS.SEARCH_BUSY, `Could not ${what}: somebody else keeps changing the same documents.`);

const isOfRow = (operation: Operation): operation is RowOperation => operation.row !== undefined;

const rejected = ({ row }: RowOperation, error: string): RejectedRow => ({
  row,
  code: "ROW_REFUSED",
  error,
  // The cluster's own words preview the value.
  reason: "The cluster refused a document.",
});

function setAside(operation: RowOperation, error: string): Outcome {
  const rejects = [rejected(operation, error)];
  return { ...noneYet(), rejects, postponed: [], trouble: undefined };
}
