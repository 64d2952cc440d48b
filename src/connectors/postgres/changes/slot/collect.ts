import type { ChangeCount } from "../change-log.ts";
import type { RecordedTable } from "../recorder.ts";
import { recordedName } from "../recorder.ts";
import {
  type BeginMessage,
  type Message,
  type RelationMessage,
  type RowMessage,
  type Tuple,
  UNCHANGED,
} from "./pgoutput.ts";
import { isVisible, type Snapshot, wholeXid } from "./snapshot.ts";

/** A row's columns that lead to keys, as texts. */
type Image = readonly (string | null)[];

/** Images as a key of JSON, each once; true: it is also an old one. */
export type CollectedImages = ReadonlyMap<string, boolean>;

interface Collected {
  count: number;
  isTruncated: boolean;
  isIncomplete: boolean;
  readonly images: Map<string, boolean>;
}

/** What is looked for: the changes between two snapshots of tables, by the oids of their parts. */
interface WantedChanges {
  readonly now: Snapshot;
  readonly since: Snapshot;
  readonly tables: readonly RecordedTable[];
  /** `relation`: as it is recorded. */
  readonly parts: readonly { readonly relation: string; readonly oid: string }[];
}

/**
 * Chooses from the messages of a slot those of the transactions that the snapshot of the round shows and that of the
 * position does not. The server decodes a commit before other sessions can see it, as one that waits for a synchronous
 * standby: such a transaction is left for a later round.
 */
export class ChangeCollector {
  readonly #wanted: WantedChanges;
  readonly #tables = new Map<string, RecordedTable[]>();
  readonly #relations = new Map<string, RelationMessage>();
  readonly #found = new Map<string, Collected>();
  #isOfRound = false;
  #changes = 0;
  /** Where the first commit is that the snapshot of the round does not show. */
  firstInvisible: bigint | undefined;

  constructor(wanted: WantedChanges) {
    this.#wanted = wanted;
    for (const { relation, oid } of wanted.parts) {
      const ofPart = wanted.tables.filter((table) => recordedName(table) === relation);
      this.#tables.set(oid, [...(this.#tables.get(oid) ?? []), ...ofPart]);
    }
  }

  /** Of all tables. */
  get changes(): number {
    return this.#changes;
  }

  get counts(): readonly ChangeCount[] {
    return [...this.#found].map(([relation, { images: _, ...counted }]) => ({ relation, ...counted }));
  }

  imagesOf(relation: string): CollectedImages {
    return this.#found.get(relation)?.images ?? new Map();
  }

  add(message: Message): void {
    switch (message.kind) {
      case "begin":
        this.#begin(message);
        return;
      case "relation":
        this.#relations.set(message.oid, message);
        return;
      case "truncate":
        if (!this.#isOfRound) return;
        for (const oid of message.oids) {
          for (const found of this.#count(oid)) found.isTruncated = true;
        }
        return;
      case "insert":
      case "update":
      case "delete":
        if (this.#isOfRound) this.#row(message);
        return;
      case "other":
        return;
    }
  }

  #begin({ xid: last32, commitLsn }: BeginMessage): void {
    const { now, since } = this.#wanted;
    const xid = wholeXid(last32, now);
    const isShown = isVisible(xid, now);
    if (!isShown) this.firstInvisible ??= commitLsn;
    this.#isOfRound = isShown && !isVisible(xid, since);
  }

  #count(oid: string): readonly Collected[] {
    return (this.#tables.get(oid) ?? []).map((table) => {
      const relation = recordedName(table);
      const found = this.#found.get(relation) ?? {
        count: 0,
        isTruncated: false,
        isIncomplete: false,
        images: new Map<string, boolean>(),
      };
      this.#found.set(relation, found);
      found.count += 1;
      this.#changes += 1;
      return found;
    });
  }

  #row(message: RowMessage): void {
    const relation = this.#relations.get(message.oid);
    for (const [index, found] of this.#count(message.oid).entries()) {
      const table = this.#tables.get(message.oid)?.[index];
      const images = relation === undefined || table === undefined ? undefined : imagesOf(message, relation, table);
      if (images === undefined) {
        found.isIncomplete = true;
        continue;
      }
      for (const { image, isOld } of images) {
        const key = JSON.stringify(image);
        found.images.set(key, isOld || found.images.get(key) === true);
      }
    }
  }
}

/** Undefined: a column that leads to a key is not known. */
function imagesOf(
  message: RowMessage,
  relation: RelationMessage,
  { imageColumns }: RecordedTable,
): readonly { readonly image: Image; readonly isOld: boolean }[] | undefined {
  const places = imageColumns.map(({ name }) => relation.columns.findIndex((column) => column.name === name));
  const before = message.kind === "insert" ? null : places.map((place) => oldValue(message, relation, place));
  const after = message.new === undefined ? null : places.map((place) => newValue(message, relation, place));
  const isKnown = (image: readonly (string | null | undefined)[] | null): image is Image | null =>
    image === null || !image.includes(undefined);
  if (!isKnown(before) || !isKnown(after)) return undefined;
  // A row that is found as it is now is not worth a second look.
  const isSame = before !== null && after !== null && JSON.stringify(before) === JSON.stringify(after);
  return [
    ...(before === null || isSame ? [] : [{ image: before, isOld: true }]),
    ...(after === null ? [] : [{ image: after, isOld: false }]),
  ];
}

type Value = string | null | undefined;

/** An update that did not touch the identity comes without an old row: the values of the identity are as before. */
function oldValue(message: RowMessage, relation: RelationMessage, place: number): Value {
  if (message.old !== undefined) return valueInOld(message.old, relation, place);
  if (relation.identity === "f" || relation.columns[place]?.isKey !== true) return undefined;
  return known(message.new, place);
}

function newValue(message: RowMessage, relation: RelationMessage, place: number): Value {
  const value = known(message.new, place);
  if (value !== undefined || message.old === undefined) return value;
  // It is stored apart and was not touched.
  return message.new?.[place] === UNCHANGED ? valueInOld(message.old, relation, place) : undefined;
}

function valueInOld(
  { tuple, isWhole }: NonNullable<RowMessage["old"]>,
  relation: RelationMessage,
  place: number,
): Value {
  return isWhole || relation.columns[place]?.isKey === true ? known(tuple, place) : undefined;
}

function known(tuple: Tuple | undefined, place: number): Value {
  const value = tuple?.[place];
  return value === UNCHANGED ? undefined : value;
}
