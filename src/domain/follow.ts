import { z } from "zod";

/** How a mart follows every change of the tables that its query reads. */

/** What a change of one table means, where it is not derived from the query. */
const followedTableSchema = z.union(
  [
    z.strictObject({
      key_columns: z
        .array(z.string().min(1))
        .min(1)
        .describe("The columns of this table that are the mart's key, in its order."),
    }),
    z.strictObject({
      on_change: z
        .enum(["everything", "ignore"])
        .describe("everything: any change compares the whole mart; ignore: changes are left to the sweep."),
    }),
    z.strictObject({
      keys: z
        .string()
        .max(16 * 1024)
        .describe(
          "A SELECT of the keys. `changed` has the old and new rows of this table; `present.<table>` the rows of another one, with those that it had before.",
        ),
    }),
  ],
  {
    error: "Give one of these, and nothing else: key_columns, a list; keys, a SELECT; on_change: everything or ignore.",
  },
);
export type FollowedTableChoice = Readonly<z.infer<typeof followedTableSchema>>;
/** `follow.tables`: choices by `schema.table`, whose names may be quoted as in SQL. */
export type FollowTables = Readonly<Record<string, FollowedTableChoice>>;

export const followSchema = z.strictObject({
  check_every_seconds: z
    .number()
    .min(0.1)
    .max(3600)
    .default(1)
    .describe(
      "How often each runner asks the source for changes. Changes start a run only then, so a larger number also means fewer runs, each with more changes.",
    ),
  full_compare_above_percent: z
    .int()
    .min(1)
    .max(100)
    .default(30)
    .describe(
      "Compare the whole mart when more of its keys than this are concerned. Up to 1,000 keys are never too many, and more than 1,000,000 always are.",
    ),
  max_changes: z
    .int()
    .min(1)
    .max(100_000_000)
    .default(1_000_000)
    .describe("Compare the whole mart when more rows than this have changed."),
  sweep_parts: z
    .int()
    .min(1)
    .max(1000)
    .default(1)
    .describe(
      "In how many sweeps the whole mart is compared, a range of keys at a time; 1: in each. A search index is always compared as a whole, and so is a table whose key has another type than in the query, or one that is not built in.",
    ),
  tables: z
    .record(z.string(), followedTableSchema)
    .default({})
    .describe(
      'Tables, as schema.table or "Schema"."Table", whose way to the key cannot be derived from the query, or is to be another.',
    ),
});

/** How a source tells of its changes: by a table that triggers fill, or by a replication slot. */
export type ChangesFrom =
  | { readonly kind: "table" }
  | {
      readonly kind: "slot";
      /** Of the slot and of its publication. */
      readonly name: string;
      /** A pipeline that is further behind than this many bytes of WAL is not waited for. */
      readonly keepBytes: number;
    };

/**
 * Up to where a mart has followed its source. It is made and read by the source's connector alone; the engine only
 * keeps it.
 */
export const followPositionSchema = z.object({
  /** As `pg_current_snapshot()` prints it: every change that it shows is in the mart. */
  snapshot: z.string(),
  /** What must not have changed since, by its name for people: the server, each table, each trigger, the query. */
  fingerprint: z.record(z.string(), z.string()),
  /** The newest recorded change that was seen: it must still be there, unless it was forgotten. */
  lastChange: z.object({ number: z.string(), xid: z.string() }).nullable(),
  /** The snapshot up to which changes of each table were forgotten: they are never remembered again. */
  forgotten: z.record(z.string(), z.string()).default({}),
  /** The end of the source's WAL at that time: a server that was started again must have come at least that far before. */
  written: z.string().optional(),
  /** Where changes come from a replication slot: the snapshot shows every commit before this place in the WAL. */
  lsn: z.string().optional(),
  /** Where the slot itself was then: it never goes back, unless its server does. */
  slotLsn: z.string().optional(),
});
export type FollowPosition = Readonly<z.infer<typeof followPositionSchema>>;

/** Where the next sweep begins, and in how many parts it and those after it compare the rest of the key space. */
export const sweepPositionSchema = z.object({ after: z.array(z.string()), parts: z.int().min(1) });
export type SweepPosition = Readonly<z.infer<typeof sweepPositionSchema>>;

/**
 * Why a whole mart is compared, in a word; the reason for people is a sentence beside it.
 * - `position`: it was given up, or belongs to another query or key, or a comparison was not ended.
 * - `source`: the source does not vouch for the changes alone, or says that all rows depend on one.
 * - `keys`: more are concerned than is worth following.
 */
export const COMPARE_CAUSES = ["first_run", "position", "target", "source", "keys", "sweep"] as const;
export type CompareCause = (typeof COMPARE_CAUSES)[number];
