import { loadTable } from "../../src/connectors/postgres/loads/load-table.ts";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { type Chaos, COPY_TASK, type Path } from "./chaos.ts";
import type { TestDatabase } from "./database.ts";

export const ROWS = 1200;
export const BATCH = 120;
const QUERY = "SELECT id, code, title, modified FROM content.film";
const COLUMNS = "id, code, title, modified";

/** How the old target differs: every tenth row is stale, every twentieth is missing, and there are some extra rows. */
const STALE = ROWS / 10;
const MISSING = ROWS / 20;
const EXTRA = 90;

/** One way of loading: the target's state before, how it is loaded, and what the runs must add up to. */
export interface Kind {
  readonly name: string;
  readonly mode: "full" | "incremental";
  /** As the run record names it: proves that the load went the way the test is about. */
  readonly strategy: string;
  readonly config: { readonly target_key: readonly string[] };
  /** The columns by which rows are read, as in the read statement. */
  readonly order: string;
  /** Where rows are that a checkpoint has passed, while the load is not over. */
  readonly heldBy: readonly ("load" | "target")[];
  readonly hasOldTarget: boolean;
  readonly written: number;
  readonly deleted: number;
}

const ONTO_OLD = { mode: "full", hasOldTarget: true, written: STALE + MISSING, deleted: EXTRA } as const;
const INTO_NEW = { hasOldTarget: false, written: ROWS, deleted: 0 } as const;

export const NEW_TARGET: Kind = {
  ...INTO_NEW,
  name: "full, new target",
  mode: "full",
  strategy: "new table",
  config: { target_key: ["id"], create_target: true } as Kind["config"],
  order: "(id)",
  heldBy: ["load"],
};

export const OLD_TARGET: Kind = {
  ...ONTO_OLD,
  name: "full, existing target",
  strategy: "compare and apply",
  config: { target_key: ["id"] },
  order: "(id)",
  heldBy: ["load", "target"],
};

export const TEXT_KEY: Kind = {
  ...ONTO_OLD,
  name: "full, text key",
  strategy: "shadow and merge",
  config: { target_key: ["code"] },
  order: '(code COLLATE "C")',
  heldBy: ["load"],
};

export const INCREMENTAL: Kind = {
  ...INTO_NEW,
  name: "incremental",
  mode: "incremental",
  strategy: "upsert",
  config: {
    target_key: ["id"],
    mode: "incremental",
    incremental_key: "modified",
    incremental_id_key: "id",
    create_target: true,
  } as Kind["config"],
  order: "(modified, id)",
  heldBy: ["target"],
};

export const KINDS: readonly Kind[] = [NEW_TARGET, OLD_TARGET, TEXT_KEY, INCREMENTAL];

/** Ids are even, so that extra rows fit between them; timestamps repeat, so that batches end within ties. */
export async function createSource({ query }: Pick<Chaos, "query">): Promise<void> {
  await query(`
    CREATE TABLE content.film (id bigint PRIMARY KEY, code text NOT NULL, title text, modified timestamptz NOT NULL);
    INSERT INTO content.film
    SELECT n * 2, md5(n::text), 'film ' || n, '2020-01-01 00:00:00.000001+00'::timestamptz + n / 7 * interval '1 microsecond'
      FROM generate_series(1, ${ROWS}) n;
    CREATE UNIQUE INDEX ON content.film (code COLLATE "C");
    CREATE INDEX ON content.film (modified, id);
    ANALYZE content.film`);
}

/** A pipeline with a target of its own, in the state that the kind starts from. */
export async function createPipeline(chaos: Chaos, kind: Kind, path: Path, name: string): Promise<Pipeline> {
  const target = `analytics.${name}`;
  if (kind.hasOldTarget) await createOldTarget(chaos.target, target, kind.config.target_key[0] as string);
  const tasks = [
    { order_index: 1, task_type: "SQL", body: QUERY },
    { order_index: 2, task_type: "TYPESCRIPT", body: COPY_TASK },
  ];
  const reader = path === "rows" ? { tasks } : { source_query: QUERY };
  return chaos.create({ name, ...reader, target_table: target, batch_size: BATCH, ...kind.config });
}

async function createOldTarget({ query }: TestDatabase, target: string, key: string): Promise<void> {
  // Created separately, because the source may be in another database.
  await query(`
    BEGIN; SET LOCAL ROLE vitrina_writer;
    CREATE TABLE ${target} (id bigint NOT NULL, code text NOT NULL, title text, modified timestamptz NOT NULL, PRIMARY KEY (${key}));
    INSERT INTO ${target}
    SELECT n * 2, md5(n::text), CASE WHEN n % 10 = 1 THEN 'stale' ELSE 'film ' || n END,
           '2020-01-01 00:00:00.000001+00'::timestamptz + n / 7 * interval '1 microsecond'
      FROM generate_series(1, ${ROWS}) n WHERE n % 20 <> 0;
    INSERT INTO ${target}
    SELECT n * 31 + (n * 31 + 1) % 2, 'gone ' || n, 'too many', '2019-01-01' FROM generate_series(1, ${EXTRA}) n;
    COMMIT`);
}

/** Rows of the query that the target lacks or has differently, and vice versa. Repeated rows count. */
export async function differences(chaos: Chaos, target: string): Promise<number> {
  const wanted = await textsOf(chaos.database, QUERY);
  const found = await textsOf(chaos.target, `SELECT ${COLUMNS} FROM ${target}`);
  return countMissing(wanted, found) + countMissing(found, wanted);
}

async function textsOf({ query }: TestDatabase, select: string): Promise<string[]> {
  return (await query(`SELECT r::text AS text FROM (${select}) r`)).map(({ text }) => text as string);
}

function countMissing(wanted: readonly string[], found: readonly string[]): number {
  const left = new Map<string, number>();
  for (const text of found) left.set(text, (left.get(text) ?? 0) + 1);
  let missing = 0;
  for (const text of wanted) {
    const count = left.get(text) ?? 0;
    if (count === 0) missing += 1;
    else left.set(text, count - 1);
  }
  return missing;
}

/** Rows that the checkpoint has passed, but that are not yet where they must be. */
export async function missingBehindCheckpoint(chaos: Chaos, kind: Kind, { id, target_table }: Pipeline) {
  const { scanPosition } = await chaos.store.state.get(id);
  if (scanPosition === null) return 0;
  const [schema = "", table = ""] = target_table.split(".");
  const load = `${schema}.${loadTable({ schema, table }, id, "load").table}`;
  // A target elsewhere is complete before the meta-store hears of it.
  const [found] = await chaos.target.query("SELECT to_regclass($1) IS NOT NULL AS unfinished", [load]);
  const held = { load: found?.["unfinished"] ? load : target_table, target: target_table };
  const holders = kind.heldBy.map((name) => `SELECT ${COLUMNS} FROM ${held[name]}`).join(" UNION ALL ");
  const position = scanPosition.map((value) => `'${value}'`).join(", ");
  const passed = await textsOf(chaos.database, `${QUERY} WHERE ${kind.order} <= (${position})`);
  return countMissing(passed, await textsOf(chaos.target, holders));
}

/** Tables that an unfinished load leaves beside its target. */
export async function loadTables({ target }: Chaos): Promise<unknown[]> {
  const rows = await target.query(
    `SELECT relname FROM pg_class WHERE relnamespace = 'analytics'::regnamespace AND relkind = 'r'
        AND relname LIKE '\\_vitrina\\_%' AND relname <> '_vitrina_checkpoint'`,
  );
  return rows.map(({ relname }) => relname);
}
