// The safeguards that npm run test:mutation takes out, one at a time, and the tests that must notice.
const ZOMBIE = "tests/chaos/zombie.test.ts";
const SEARCH_ZOMBIES = "tests/search/chaos/zombies.test.ts";
const LOST_TARGET = "tests/integration/lost-target.test.ts";
const FOLLOWING = "tests/sql-analysis/property.test.ts";
const FOLLOW_PLANS = "tests/sql-analysis/plan.test.ts";
const FOLLOW_REFUSED = "tests/sql-analysis/refused.test.ts";
const LATE_COMMIT = "tests/chaos/late-commit.test.ts";

/**
 * `replace`: pairs of texts; each must occur in the file, and all its occurrences are replaced. A mutant must compile:
 * a condition is made constant in a way that the compiler does not see through. `needs`: a program without which its
 * tests are skipped.
 */
const FOLLOW_RUNS = "tests/integration/follow.test.ts";
const DATABASE_SETTINGS = "tests/integration/database-settings.test.ts";
const CHANGE_SCRIPT = "tests/integration/change-script.test.ts";
const FOLLOW_ODD_VALUES = "tests/integration/follow-odd-values.test.ts";
const FOLLOW_KILLS = "tests/chaos/kill-follow-stream.test.ts";
const SLOT_CHANGES = "tests/integration/slot-changes.test.ts";
const SLOT_KEEPING = "tests/integration/slot-keeping.test.ts";
const FOLLOW_STATE = "tests/conformance/follow-state.test.ts";
const SWEEPS = "tests/integration/sweep.test.ts";
const ALTERED_SOURCE = "tests/chaos/altered-source-follow.test.ts";
const ALTERED_IN_ROUND = "tests/chaos/altered-in-round-follow.test.ts";
const RESTORED_SOURCE = "tests/chaos/restored-source-follow.test.ts";
const FOLLOW_KEPT = "tests/integration/follow-kept.test.ts";
const KEPT_SESSIONS = "tests/integration/kept-sessions.test.ts";
export const MUTATIONS = [
  {
    name: "search: what an interrupted load left becomes the previous index",
    file: "src/connectors/elasticsearch/loads/new-index-load.ts",
    replace: [["loaded?.in_parts === true", "loaded?.in_parts === undefined"]],
    tests: ["tests/search/indexes.test.ts"],
  },
  {
    name: "requests: a restore under way serves a request to run",
    file: "src/meta-store/postgres/requests.ts",
    replace: [["p.enabled AND p.run_kind = 'load' AND", "p.enabled AND"]],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "requests: a restore can be paused, and becomes a load",
    file: "src/meta-store/postgres/requests.ts",
    replace: [["p.id = $1 AND p.run_kind = 'load'\n", "p.id = $1\n"]],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "rejects: a restore settles them like a load",
    file: "src/meta-store/postgres/claims.ts",
    replace: [['claim.kind === "load" && claim.pipeline.mode', "claim.pipeline.mode"]],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "rejects: a restore counts as the beginning of a load",
    file: "src/meta-store/postgres/rejects.ts",
    replace: [["began.kind = 'load' AND ", ""]],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "horizon: a standby looks back from its clock, whatever its lag",
    file: "src/connectors/postgres/horizon.ts",
    replace: [["coalesce(pg_last_xact_replay_timestamp(), '-infinity')", "clock_timestamp()"]],
    tests: ["tests/integration/copied-servers.test.ts"],
  },
  {
    name: "horizon: rows of a subscription count as written here",
    file: "src/connectors/postgres/horizon.ts",
    replace: [
      ["WHEN applied.unknown > 0 THEN '-infinity'", ""],
      ["ELSE applied.until END", "END"],
      ["applied.unknown > 0", "false"],
      ["applied.subscriptions > 0", "false"],
    ],
    tests: ["tests/integration/copied-servers.test.ts"],
  },
  {
    name: "lost target: one that is empty after all rows were written goes for new",
    file: "src/data-plane/target-loss.ts",
    replace: [["mark.filled === true && !writer", "mark.filled === undefined && !writer"]],
    tests: ["tests/integration/lost-target.test.ts"],
  },
  {
    name: "horizon: Vitrina's own writers are overlooked where a mart is a source",
    file: "src/connectors/postgres/horizon.ts",
    replace: [["has_table_privilege(c.oid, 'SELECT') AND", "false AND"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "horizon: a session that hides its transactions is overlooked",
    file: "src/connectors/postgres/horizon.ts",
    replace: [["a.state = 'disabled' OR (a.xact_start IS NULL AND a.backend_xid IS NOT NULL)", "false"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "push-down: a snapshot whose session was ended is taken for a mistake of the query",
    file: "src/connectors/postgres/read-session.ts",
    replace: [['["42704", "22023", "55000"]', '["55000"]']],
    tests: ["tests/integration/ended-sessions.test.ts"],
  },
  {
    name: "identity: a copy of a server counts as the same database",
    file: "src/postgres/database-mark.ts",
    replace: [['rows[0]?.["mark"] === "held"', 'rows[0]?.["mark"] !== undefined']],
    tests: ["tests/integration/copied-servers.test.ts"],
  },
  {
    name: "session: names are searched where the database's owner says",
    file: "src/postgres/session.ts",
    replace: [["...OWN_STRINGS, ...OWN_NAMES }", "...OWN_STRINGS, ...OWN_NAMES, search_path: 'public, pg_catalog' }"]],
    tests: ["tests/integration/hostile-owner.test.ts"],
  },
  {
    name: "migrate: a superuser works in a schema of somebody else",
    file: "src/meta-store/migrate.ts",
    replace: [
      [
        "    await requireTrustedSchema(client);\n",
        "    if (client === undefined) await requireTrustedSchema(client);\n",
      ],
    ],
    tests: ["tests/integration/hostile-owner.test.ts"],
  },
  {
    name: "session: a pooler may hand its backend to others",
    file: "src/postgres/session.ts",
    replace: [
      [
        "  if (!(await applyIn(session, backend, wanted))) throw sharedBackends();",
        "  await applyIn(session, backend, wanted);",
      ],
      [
        "other === backend || (await backendOf(session)) !== backend",
        "other + backend + (await backendOf(session)) < 0",
      ],
    ],
    tests: ["tests/integration/pooler.test.ts"],
    needs: "pgbouncer",
  },
  {
    name: "access: every login may do everything",
    file: "src/control-plane/auth/route-access.ts",
    replace: [["mayActAs(caller.role, needed)", "mayActAs(needed, needed)"]],
    tests: ["tests/integration/api-access.test.ts"],
  },
  {
    name: "access: a revoked key is taken",
    file: "src/control-plane/auth/login.ts",
    replace: [["found.revoked", "found.name.length === 0"]],
    tests: ["tests/integration/api-keys.test.ts"],
  },
  {
    name: "cancel: recovery takes a run up again that somebody cancelled",
    file: "src/domain/pipeline-status.ts",
    replace: [['"PAUSED", CANCEL_REQUESTED: BEFORE },', '"PAUSED", CANCEL_REQUESTED: "RUN_REQUESTED" },']],
    tests: ["tests/integration/cancel.test.ts"],
  },
  {
    name: "cancel: a withdrawn restore is carried out by the next run",
    file: "src/meta-store/migrations/0024_run_kinds.sql",
    replace: [["    NEW.run_kind := 'load';\n", ""]],
    tests: ["tests/integration/cancel.test.ts"],
  },
  {
    name: "audit: a change is kept without its entry",
    file: "src/postgres/connection.ts",
    replace: [["await pool.beforeCommit?.(client);", ""]],
    tests: ["tests/integration/api-audit.test.ts"],
  },
  {
    name: "messages: what a function raised is shown to everybody",
    file: "src/domain/harmless-message.ts",
    replace: [["if (isRaisedByHand(error)) return undefined;", "if (isRaisedByHand(error)) return message;"]],
    tests: ["tests/domain/harmless-message.test.ts"],
  },
  {
    name: "messages: words of an unknown shape are shown to everybody",
    file: "src/domain/harmless-message.ts",
    replace: [["shape.test(masked)) ? masked : undefined", "shape.test(masked)) ? masked : message"]],
    tests: ["tests/domain/harmless-message.test.ts"],
  },
  {
    name: "repeated keys: at the boundary of two batches only texts are compared",
    file: "src/connectors/postgres/stage.ts",
    replace: [["if (before === null ||", "if (before === null || before.length > 0 ||"]],
    tests: ["tests/integration/type-fit.test.ts"],
  },
  {
    name: "rejects: what was written to find the refused rows stays",
    file: "src/connectors/postgres/refused-rows.ts",
    replace: [["ROLLBACK TO SAVEPOINT trial", "RELEASE SAVEPOINT trial"]],
    tests: ["tests/conformance/postgres-sink.test.ts"],
  },
  {
    name: "rejects: a full load deletes the rows that refused ones stand for",
    file: "src/connectors/postgres/loads/load-table.ts",
    replace: [["AS s ON CONFLICT DO NOTHING", "AS s WHERE false ON CONFLICT DO NOTHING"]],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "rejects: rows without a whole key stand for the whole target",
    file: "src/data-plane/execute-batch.ts",
    replace: [["(position ?? [])", "position"]],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "rejects: a row that only the commit refuses is not found",
    file: "src/connectors/postgres/refused-rows.ts",
    replace: [["SAVEPOINT trial; SET CONSTRAINTS ALL IMMEDIATE", "SAVEPOINT trial"]],
    tests: ["tests/conformance/postgres-sink.test.ts"],
  },
  {
    name: "fence: a lost lease is not noticed at commit",
    file: "src/meta-store/postgres/checkpoints.ts",
    replace: [
      ["JOIN etl.etl_pipelines p ON p.run_id = r.id", "JOIN etl.etl_pipelines p ON p.id = r.pipeline_id"],
      ["r.lease_epoch = $3 AND p.lease_epoch = $3", "r.lease_epoch = $3"],
      ["AND r.lease_expires_at > clock_timestamp()", ""],
    ],
    tests: [ZOMBIE],
  },
  {
    name: "fence beside the data: an old epoch may still write",
    file: "src/connectors/postgres/kept-checkpoint.ts",
    replace: [["pipeline_id = $1 AND epoch = $2", "pipeline_id = $1 AND $2::bigint IS NOT NULL"]],
    tests: [ZOMBIE],
  },
  {
    name: "checkpoint beside the data: a position comes back that a person gave up",
    file: "src/connectors/postgres/kept-checkpoint.ts",
    replace: [["WHEN c.epoch > $3", "WHEN c.epoch > $3 OR $3 IS NOT NULL"]],
    tests: ["tests/chaos/three-databases.test.ts"],
  },
  {
    name: "restored backup: a newer meta-store's position counts after a person decided for this one",
    file: "src/meta-store/postgres/state.ts",
    replace: [["(SELECT lease_epoch FROM", "(SELECT decided_epoch FROM"]],
    tests: ["tests/integration/restored-backup.test.ts"],
  },
  {
    name: "timeout: a frozen runner keeps its transaction",
    file: "src/connectors/postgres/sink.ts",
    replace: [["config.idleTimeoutMs", "config.idleTimeoutMs * 0"]],
    tests: [ZOMBIE],
  },
  {
    name: "reconcile: the target is looked at after the source",
    file: "src/connectors/postgres/comparison.ts",
    replace: [["ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT pg_current_snapshot()", "READ ONLY"]],
    tests: ["tests/chaos/reconcile.test.ts"],
  },
  {
    name: "snapshot: a full load that was read in parts is not followed",
    file: "src/data-plane/load.ts",
    replace: [['return resumed && scope === "everything";', 'return resumed && scope !== "everything";']],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "snapshot: each batch of a push-down reads in one of its own",
    file: "src/connectors/postgres/read-session.ts",
    replace: [["; SET TRANSACTION SNAPSHOT ", "; SET LOCAL application_name = "]],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "target: one that is ahead is got past by trying again",
    file: "src/data-plane/target-loss.ts",
    replace: [["if (!targetAhead) return;", "if (!targetAhead || name.length > 0) return;"]],
    tests: ["tests/integration/restored-backup.test.ts"],
  },
  {
    name: "watermark: how far a first load has come counts as one",
    file: "src/meta-store/postgres/state.ts",
    replace: [["row.watermark_fingerprint === null ? NO_WATERMARK : shown", "row.batch_no < 0 ? NO_WATERMARK : shown"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "target: a checkpoint is used for whatever target is there",
    file: "src/data-plane/target-loss.ts",
    replace: [["if (mark === null) return undefined;", "if (mark === null || mark.target !== null) return undefined;"]],
    tests: [LOST_TARGET],
  },
  {
    name: "target: a table that was truncated and filled a little counts as the old one",
    file: "src/connectors/postgres/target-mark.ts",
    replace: [
      ["(await hasRowBefore(client, name, asOf)) ?", "(await hasRowBefore(client, name, asOf)) || asOf.length > 0 ?"],
    ],
    tests: [LOST_TARGET],
  },
  {
    name: "target: a column that comes later is left empty in the rows before",
    file: "src/domain/target-mark.ts",
    replace: [["return before === undefined ?", "return before === undefined || columns.length > 0 ?"]],
    tests: [LOST_TARGET],
  },
  {
    name: "target: one that another query has written meanwhile counts as the checkpoint's own",
    file: "src/domain/target-mark.ts",
    replace: [["if (writtenBy === undefined ||", "if (writtenBy === undefined || writtenBy.length > 0 ||"]],
    tests: [LOST_TARGET],
  },
  {
    name: "target: what another query of the same pipeline has written is found by the next change only",
    file: "src/meta-store/postgres/follow.ts",
    replace: [
      ["return mark !== null && writtenOtherwise", "return mark !== null && fingerprint === null && writtenOtherwise"],
    ],
    tests: ["tests/integration/follow.test.ts"],
  },
  {
    name: "target: a column that it fills itself is required of the query in a full load",
    file: "src/connectors/postgres/loads/load-table.ts",
    replace: [["if (rows.length === 0) return;", "if (rows.length >= 0) return;"]],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "target: rows that a trigger leaves out count as written",
    file: "src/connectors/postgres/write-rows.ts",
    replace: [["if (leftOut > 0) throw", "if (leftOut < 0) throw"]],
    tests: ["tests/integration/target-rules.test.ts"],
  },
  {
    name: "target: rows that a trigger leaves as they were count as written",
    file: "src/connectors/postgres/write-rows.ts",
    replace: [["if (unchanged > 0 &&", "if (unchanged < 0 &&"]],
    tests: ["tests/integration/target-rules.test.ts"],
  },
  {
    name: "target: rows that a trigger keeps count as deleted",
    file: "src/connectors/postgres/write-rows.ts",
    replace: [["if (left > 0) throw", "if (left < 0) throw"]],
    tests: ["tests/integration/target-rules.test.ts"],
  },
  {
    name: "target: rules may swallow what is written",
    file: "src/connectors/postgres/target-rights.ts",
    replace: [["(row.rules === null ? []", "(row.rules === null || row.role !== null ? []"]],
    tests: ["tests/integration/target-rules.test.ts"],
  },
  {
    name: "target: that it changed while a run wrote to it is not seen",
    file: "src/data-plane/target-loss.ts",
    replace: [["if (mark === null) return;", "if (mark === null || mark.target !== null) return;"]],
    tests: [LOST_TARGET],
  },
  {
    name: "target: one that is emptied at the end of a load is marked as rightly empty",
    file: "src/data-plane/execute-load.ts",
    replace: [
      [
        "  const next = await source.nextStart({",
        "  await requireSameTarget(load, progress.targetMark);\n  const next = await source.nextStart({",
      ],
      [
        "would be recorded as rightly empty.\n  await requireSameTarget(load, progress.targetMark);",
        "would be recorded as rightly empty.",
      ],
    ],
    tests: ["tests/chaos/emptied-at-end.test.ts"],
  },
  {
    name: "source: a table that was recreated or refilled counts as the old one",
    file: "src/domain/source-mark.ts",
    replace: [["if (tablesDiffer(before, now))", "if (tablesDiffer(before, now) && before.tables === null)"]],
    tests: ["tests/integration/changed-source.test.ts"],
  },
  {
    name: "source: another database at the same address counts as the old one",
    file: "src/domain/source-mark.ts",
    replace: [
      ['isOther("system") || isOther("database")', 'before.system === ""'],
      ["if (tablesDiffer(before, now))", "if (tablesDiffer(before, now) && before.database === now.database)"],
    ],
    tests: ["tests/integration/changed-source.test.ts"],
  },
  {
    name: "source: a partition with older rows that was attached is passed over",
    file: "src/data-plane/source-change.ts",
    replace: [["if (parts.length === 0 ||", "if (parts.length >= 0 ||"]],
    tests: ["tests/integration/changed-source.test.ts"],
  },
  {
    name: "source: a lock counts as a query that takes too long, and fails for good",
    file: "src/connectors/postgres/read-session.ts",
    replace: [['lock_timeout: "10s"', 'lock_timeout: "0"']],
    tests: ["tests/integration/retry.test.ts"],
  },
  {
    name: "source: a standby that took over counts as the old one",
    file: "src/domain/source-mark.ts",
    replace: [['isOther("timeline")', 'before.timeline === ""']],
    tests: ["tests/integration/copied-servers.test.ts"],
  },
  {
    name: "target: a checkpoint beside the data that is behind counts as ahead",
    file: "src/data-plane/target-loss.ts",
    replace: [["kept.found.batchNo < batchNo", "kept.found.batchNo < -batchNo"]],
    tests: ["tests/chaos/three-databases.test.ts"],
  },
  {
    name: "key: one that is equal but written otherwise stays as it was",
    file: "src/connectors/postgres/merge-statement.ts",
    replace: [
      [
        "columns.map(({ name }) => `",
        "columns.filter(({ name }) => shape.key.every((one) => one.name !== name)).map(({ name }) => `",
      ],
    ],
    tests: ["tests/integration/type-fit.test.ts"],
  },
  {
    name: "key: a second row behind the end of a pulled batch is passed over",
    file: "src/connectors/postgres/pull-batch.ts",
    replace: [["request.eachOnce && rowCount === limit", "request.eachOnce && rowCount === -limit"]],
    tests: ["tests/integration/runner.test.ts"],
  },
  {
    name: "key: a load that met a key twice is continued behind it",
    file: "src/data-plane/execute-load.ts",
    replace: [[' === "KEY_NOT_UNIQUE_IN_SOURCE"', ".length === 0"]],
    tests: ["tests/integration/runner.test.ts"],
  },
  {
    name: "types: what could be rounded is taken for a fit",
    file: "src/connectors/postgres/type-fit.ts",
    replace: [["return precision === undefined || scale > 0 ? ROUNDS : withinRange(target);", "return FITS;"]],
    tests: ["tests/integration/type-fit.test.ts"],
  },
  {
    name: "types: a value that the server would cut is not looked for",
    file: "src/connectors/postgres/stage.ts",
    replace: [["await requireUnchanged(client, table);", "requireUnchanged.length;"]],
    tests: ["tests/integration/type-fit.test.ts"],
  },
  {
    name: "types: values are staged with the target's types, so each path converts in its own way",
    file: "src/connectors/postgres/stage.ts",
    replace: [["conversion === undefined ? `t.", 'conversion === undefined || conversion.staged !== "" ? `t.']],
    tests: ["tests/integration/type-fit.test.ts"],
  },
  {
    name: "types: a batch counts as a range of a key that sorts otherwise",
    file: "src/connectors/postgres/target-table.ts",
    replace: [["rangesUseIndex && sortsAlike", "rangesUseIndex && sortsAlike !== null"]],
    tests: ["tests/integration/type-fit.test.ts"],
  },
  {
    name: "watermark: moves as far as was read, past transactions in flight",
    file: "src/connectors/postgres/change-cursor.ts",
    replace: [['return within === "t" ? reached', 'return within !== "no answer" ? reached']],
    tests: [LATE_COMMIT],
  },
  {
    name: "watermark of numbers: a position counts at once",
    file: "src/connectors/postgres/change-cursor.ts",
    replace: [['rows[0]?.ended !== "t"', "rows[0]?.ended === undefined"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "cursor: a row without one that the read meets is let through",
    file: "src/data-plane/execute-batch.ts",
    replace: [["if (value === null) throw cursorIsNull(key);", "if (value === undefined) throw cursorIsNull(key);"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "cursor: rows without one are read after the others",
    file: "src/connectors/postgres/query-text.ts",
    replace: [['" NULLS FIRST"', '" NULLS LAST"']],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "null rows: a costly query is computed once more to look for them",
    file: "src/connectors/postgres/null-rows.ts",
    replace: [["MOST_COST_OF_QUESTION = 5_000", "MOST_COST_OF_QUESTION = 5e99"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "ties: rows that the cursor does not tell apart are not ordered by the key",
    file: "src/domain/reading-plan.ts",
    replace: [["[...cursorOf(config), ...ofKey]", "[...cursorOf(config), ...ofKey.slice(1e9)]"]],
    tests: ["tests/chaos/repeated-ids.test.ts"],
  },
  {
    name: "ties: a position that tasks make several rows of is not read again",
    file: "src/domain/reading-plan.ts",
    replace: [["!isExact && orderBy.length > 0", "!isExact && orderBy.length > 1e9"]],
    tests: ["tests/chaos/repeated-ids.test.ts"],
  },
  {
    name: "ties: rows without an id are passed over",
    file: "src/connectors/postgres/query-text.ts",
    replace: [['rest.map(isNull).join(" OR ")', 'rest.map(() => "false").join(" OR ")']],
    tests: ["tests/chaos/repeated-ids.test.ts"],
  },
  {
    name: "watermark of numbers: the greatest counts although transactions are open",
    file: "src/connectors/postgres/horizon.ts",
    replace: [['row.settled === "t"', 'row.settled !== "no answer"']],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "watermark of numbers: a number that may be used again is kept with its id",
    file: "src/data-plane/load.ts",
    replace: [["isTimeType(keyType) || (await", "keyType.length > 0 || (await"]],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "numbers ahead: a sequence with a cache is taken",
    file: "src/connectors/postgres/change-cursor.ts",
    replace: [["lookbackNumbers < cache", "lookbackNumbers > cache * 1e9"]],
    tests: ["tests/integration/numbers-ahead.test.ts"],
  },
  {
    name: "numbers ahead: a load starts at its last number",
    file: "src/domain/watermark.ts",
    replace: [["BigInt(whole) - BigInt(count)", "BigInt(whole) - BigInt(count * 0)"]],
    tests: ["tests/integration/numbers-ahead.test.ts"],
  },
  {
    name: "fingerprint: the watermark of another query is reused",
    file: "src/domain/reading-plan.ts",
    replace: [["state.watermarkFingerprint === fingerprint)", 'state.watermarkFingerprint !== fingerprint + "none")']],
    tests: ["tests/integration/incremental-load.test.ts"],
  },
  {
    name: "fingerprint: the position of another query is continued",
    file: "src/domain/checkpoint.ts",
    replace: [
      ["checkpoint.fingerprint === fingerprint ?", "checkpoint.fingerprint !== fingerprint.concat(fingerprint) ?"],
    ],
    tests: ["tests/integration/runner.test.ts"],
  },
  {
    name: "accounting: a batch that does not add up is recorded",
    file: "src/domain/run.ts",
    replace: [
      ["return rows_read + rows_added ===", "return rows_read < 0 || rows_read + rows_added <"],
      ["+ rows_dropped;", "+ rows_dropped + 1e9;"],
    ],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "accounting: the database does not check the sums",
    file: "src/meta-store/migrations/0024_run_kinds.sql",
    replace: [["rows_read + rows_added = rows_written", "rows_read + rows_added <> -1 - rows_written"]],
    tests: ["tests/integration/migrations.test.ts"],
  },
  {
    name: "protocol: a query may hold several statements",
    file: "src/connectors/postgres/read-session.ts",
    replace: [[', queryMode: "extended"', ""]],
    tests: ["tests/chaos/resume.test.ts"],
  },
  {
    name: "collation: text is compared by the rules of a language",
    file: "src/connectors/postgres/query-text.ts",
    replace: [[`collatable ? ' COLLATE "C"' : ""`, 'collatable ? " " : ""']],
    tests: ["tests/chaos/resume.test.ts"],
  },
  {
    name: "query guard: the parse tree is not examined",
    file: "src/sql-guard/guard.ts",
    replace: [["? examine(query, rules.allowedSchemas)", "? (await examine(query, rules.allowedSchemas)).slice(1e9)"]],
    tests: ["tests/sql-guard/corpus.test.ts", "tests/integration/guarded-queries.test.ts"],
  },
  {
    name: "query guard: what the source makes of a query is not looked at",
    file: "src/sql-guard/guard.ts",
    replace: [
      [
        ": audit(session, query, rules.allowedSchemas)",
        ": (await audit(session, query, rules.allowedSchemas)).slice(1e9)",
      ],
    ],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: a run does not examine its query",
    file: "src/connectors/postgres/source.ts",
    replace: [["auditQuery(lent, query, config)", "Promise.resolve([lent, auditQuery])"]],
    tests: ["tests/integration/guarded-queries.test.ts"],
  },
  {
    name: "query guard: depth is not limited before the parser runs",
    file: "src/sql-guard/limits.ts",
    replace: [["const DEEPEST_NESTING = 300;", "const DEEPEST_NESTING = 1e9;"]],
    tests: ["tests/sql-guard/text.test.ts"],
  },
  {
    name: "query guard: how much planning a query asks for is not counted",
    file: "src/sql-guard/parse-tree.ts",
    replace: [["return excess === undefined ? [] : [excess];", "return excess === undefined ? [] : [];"]],
    tests: ["tests/sql-guard/structure.test.ts"],
  },
  {
    name: "query guard: expressions behind columns are not counted",
    file: "src/sql-guard/sized-columns.ts",
    replace: [["return Math.max(PLAIN, found ?? 0, row ?? 0);", "return PLAIN;"]],
    tests: ["tests/sql-guard/structure.test.ts"],
  },
  {
    name: "query guard: the code behind types is not looked at",
    file: "src/sql-guard/audit.ts",
    replace: [["if (ownCode.length > 0) return", "if (ownCode.length > 1e9) return"]],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: the code that tables bring along is not looked at",
    file: "src/sql-guard/own-code-of-tables.ts",
    replace: [["if (!(await mayRun(session, row))) continue;", "if (!(await mayRun(session, row)) || row) continue;"]],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "sessions: an error of any length is made one text",
    file: "src/postgres/bounded-messages.ts",
    replace: [["const MOST_MESSAGE_BYTES = 64 * 1024;", "const MOST_MESSAGE_BYTES = 2 ** 40;"]],
    tests: ["tests/integration/large-messages.test.ts"],
  },
  {
    name: "query guard: grouping sets of several SELECTs are not added up",
    file: "src/sql-guard/structure.ts",
    replace: [["level.groupings + inner.groupings", "inner.groupings"]],
    tests: ["tests/sql-guard/structure.test.ts"],
  },
  {
    name: "query guard: columns set equal are not counted",
    file: "src/sql-guard/structure.ts",
    replace: [["level.equalities + equalitiesIn(node)", "level.equalities + 0 * equalitiesIn(node)"]],
    tests: ["tests/sql-guard/structure.test.ts"],
  },
  {
    name: "query guard: conditions on a UNION are counted once",
    file: "src/sql-guard/structure.ts",
    replace: [['this.#size("quals", node, level) * branches', 'this.#size("quals", node, level) * branches ** 0']],
    tests: ["tests/sql-guard/structure.test.ts"],
  },
  {
    name: "query guard: the types inside views and row security are not looked at",
    file: "src/sql-guard/audit-queries.ts",
    replace: [
      ['":(?:consttype|resulttype|typid|row_typeid|array_typeid) (\\\\d+)"', '":nothing (\\\\d+)"'],
      ['":(?:funccoltypes|coltypes) \\\\(o ([\\\\d ]+)\\\\)"', '":nothing ([\\\\d ]+)"'],
    ],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: row security may call any function of PostgreSQL",
    file: "src/sql-guard/audit.ts",
    replace: [["facts.builtIn && ASKS_WHO_READS.test(facts.name)", "facts.builtIn || ASKS_WHO_READS.test(facts.name)"]],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: what row security reads is not followed",
    file: "src/sql-guard/audit-queries.ts",
    replace: [["WHERE p.polrelid = reached.relid AND", "WHERE p.polrelid = 0 AND"]],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: a text may become an array of a domain",
    file: "src/sql-guard/audit.ts",
    replace: [["makesArrays || [...functions", "(makesArrays && false) || [...functions"]],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "query guard: the body of a function that takes its place is not looked at",
    file: "src/sql-guard/own-code-of-tables.ts",
    replace: [
      [
        "return body != null && (await callsOthers(session, body));",
        "return body != null && (await callsOthers(session, body)) && body.length > 1e9;",
      ],
    ],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "API: whoever saves asks the source without waiting for a turn",
    file: "src/control-plane/concurrency-limit.ts",
    replace: [["else await turn();", "else turn().catch(() => undefined);"]],
    tests: ["tests/integration/api-apply.test.ts"],
  },
  {
    name: "source: whoever waits for a server that does not stop waits for ever",
    file: "src/connectors/postgres/deadline.ts",
    replace: [["    void client.end();\n", ""]],
    tests: ["tests/integration/api-preview.test.ts"],
  },
  {
    name: "query guard: views of views are not counted",
    file: "src/sql-guard/audit.ts",
    replace: [["total.relations += times * relations;", "total.relations += times * Math.min(1, relations);"]],
    tests: ["tests/sql-guard/audit.test.ts"],
  },
  {
    name: "query guard: signs in a row are not limited before the scanner runs",
    file: "src/sql-guard/limits.ts",
    replace: [["if (signs !== -1)", "if (signs < -1)"]],
    tests: ["tests/sql-guard/worst-case.test.ts"],
  },
  {
    name: "query guard: the schema in front of a column is not looked at",
    file: "src/sql-guard/node-rules.ts",
    replace: [["  ColumnRef: columnRule,\n", "  UnusedRef: columnRule,\n"]],
    tests: ["tests/sql-guard/corpus.test.ts"],
  },
  {
    name: "guard: a full load deletes without a limit",
    file: "src/connectors/deletion-guard.ts",
    replace: [["if (existing === 0 || deleted === 0) return;", "if (existing >= 0 || deleted === 0) return;"]],
    tests: ["tests/integration/full-load.test.ts"],
  },
  {
    name: "refused load: is continued instead of started over",
    file: "src/data-plane/execute-load.ts",
    replace: [["!mayPass(retry) &&", "mayPass(retry) &&"]],
    tests: ["tests/chaos/resume.test.ts"],
  },
  {
    name: "search: the result of a single document is not read",
    file: "src/connectors/elasticsearch/bulk.ts",
    replace: [['COUNT_OF_RESULT[item.result ?? ""]', 'COUNT_OF_RESULT[item.result ?? "updated"]']],
    tests: ["tests/search/faults.test.ts"],
  },
  {
    name: "search: an answer may leave documents out",
    file: "src/connectors/elasticsearch/bulk.ts",
    replace: [
      ["items.length !== operations.length", "items.length > operations.length"],
      [
        "Object.values(items[index] as Record<string, Item>)[0] ?? {}",
        'Object.values((items[index] ?? { index: { _id: operation.id, result: "created" } }) as Record<string, Item>)[0] ?? {}',
      ],
    ],
    tests: ["tests/search/faults.test.ts"],
  },
  {
    name: "search: what another node may have carried out before counts as sent once",
    file: "src/connectors/elasticsearch/bulk.ts",
    replace: [["if (answer.isSecondTry)", "if (answer.isSecondTry && operations.length > 1e9)"]],
    tests: ["tests/search/faults.test.ts"],
  },
  {
    name: "search: what a failing shard may have carried out counts as sent once",
    file: "src/connectors/elasticsearch/bulk.ts",
    replace: [["if (status >= 500) inDoubt", "if (status >= 5e9) inDoubt"]],
    tests: ["tests/search/faults.test.ts"],
  },
  {
    name: "search: documents carry no version that grows with the claims",
    file: "src/connectors/elasticsearch/index-writer.ts",
    replace: [["(BigInt(epoch) << 32n) + BigInt(batchNo)", "BigInt(epoch * 0) + BigInt(batchNo * 0) + 1n"]],
    tests: [SEARCH_ZOMBIES],
  },
  {
    name: "search: who takes over leaves the alias of the claim before",
    file: "src/connectors/elasticsearch/write-alias.ts",
    replace: [
      [
        "...earlier.map(({ alias }) => removeAlias(index, alias))",
        "...earlier.slice(1e9).map(({ alias }) => removeAlias(index, alias))",
      ],
    ],
    tests: [SEARCH_ZOMBIES],
  },
  {
    name: "search: a merge does not ask whether the document is still the one it read",
    file: "src/connectors/elasticsearch/merging-lines.ts",
    replace: [["_id: id, if_seq_no: seqNo, if_primary_term: primaryTerm", "_id: id, ...[seqNo, primaryTerm].slice(2)"]],
    tests: ["tests/search/shared-index.test.ts"],
  },
  {
    name: "search: a merge writes over a document that was not there when it looked",
    file: "src/connectors/elasticsearch/merging-lines.ts",
    replace: [["{ create: { _id: id } }", "{ index: { _id: id } }"]],
    tests: ["tests/search/shared-index.test.ts"],
  },
  {
    name: "search: somebody's index of the target's name is deleted without being asked for",
    file: "src/connectors/elasticsearch/index-writer.ts",
    replace: [["if (!adopts) requireAlias(family)", "if (!adopts && family.live !== undefined) requireAlias(family)"]],
    tests: ["tests/search/shared-index.test.ts"],
  },
  {
    name: "search: the switch does not ask whether the claim still holds",
    file: "src/connectors/elasticsearch/index-family.ts",
    replace: [["must_exist: true", "must_exist: false"]],
    tests: ["tests/search/shared-index.test.ts"],
  },
  {
    name: "search: an alias may lead to a second index",
    file: "src/connectors/elasticsearch/index-family.ts",
    replace: [["{ is_write_index: true } as const", "{ is_write_index: false } as const"]],
    tests: [SEARCH_ZOMBIES],
  },
  {
    name: "search: a new index is not counted before the switch",
    file: "src/connectors/elasticsearch/loads/new-index-load.ts",
    replace: [["> expected.uncertain)", "> expected.uncertain + 1e9)"]],
    tests: ["tests/search/indexes.test.ts"],
  },
  {
    name: "search: an index that lacks a shard is compared as if it were whole",
    file: "src/connectors/elasticsearch/index-family.ts",
    replace: [['"allow_partial_search_results=false"', '"allow_partial_search_results=true"']],
    tests: ["tests/search/reconcile.test.ts"],
  },
  {
    name: "search: documents are counted without the shards that are away",
    file: "src/connectors/elasticsearch/index-family.ts",
    replace: [['"allow_partial_search_results=false"', '"allow_partial_search_results=true"']],
    tests: ["tests/search/indexes.test.ts"],
  },
  {
    name: "search: a point in time leaves out the shards that are away",
    file: "src/connectors/elasticsearch/point-in-time.ts",
    replace: [["&allow_partial_pit_creation=false", ""]],
    tests: ["tests/search/reconcile.test.ts"],
  },
  {
    name: "search: an answer that some shards did not take part in counts",
    file: "src/connectors/elasticsearch/cluster.ts",
    replace: [["&& failed > 0)", "&& failed > 1e9)"]],
    tests: ["tests/search/reconcile.test.ts"],
  },
  {
    name: "search: long numbers are rounded",
    file: "src/connectors/elasticsearch/field-types.ts",
    replace: [
      ["EXACT_NUMBER.test(text) ? text : quote(text)", "EXACT_NUMBER.test(text) ? text : String(Number(text))"],
    ],
    tests: ["tests/search/values.test.ts"],
  },
  {
    name: "delete by key: a key counts as gone although a row of the batch has it, written otherwise",
    file: "src/connectors/postgres/gone-keys.ts",
    replace: [["} AS p`", "} AS p WHERE false`"]],
    tests: ["tests/integration/delete-by-key.test.ts"],
  },
  {
    name: "delete by key: a refused row of a table counts as gone",
    file: "src/connectors/postgres/table-writer.ts",
    replace: [["presentKeys(client, table, batch.rows())", "presentKeys(client, table, batch.rows().slice(1e9))"]],
    tests: ["tests/integration/delete-by-key.test.ts"],
  },
  {
    name: "delete by key: a key that the target would cut or round is cut or rounded",
    file: "src/connectors/postgres/refused-keys.ts",
    replace: [
      [
        "await requireUnchanged(client, ofKey, KEYS)",
        "await requireUnchanged(client, { ...ofKey, conversions: new Map() }, KEYS)",
      ],
    ],
    tests: ["tests/integration/delete-by-key.test.ts"],
  },
  {
    name: "delete by key: a trigger may keep the row",
    file: "src/connectors/postgres/write-rows.ts",
    replace: [["if (deleted >= counted) return deleted", "if (deleted >= 0 || counted > 0) return deleted"]],
    tests: ["tests/integration/delete-by-key.test.ts"],
  },
  {
    name: "delete by key: rows that a batch deletes leave the target marked as filled",
    file: "src/meta-store/postgres/checkpoints.ts",
    replace: [["WHEN $25::bigint > 0 THEN", "WHEN $25::bigint > 0 AND false THEN"]],
    tests: ["tests/conformance/meta-store.test.ts"],
  },
  {
    name: "delete by key: the last rows of a target may go unasked",
    file: "src/connectors/deletion-guard.ts",
    replace: [["Math.max(deleted + 1, byPercent)", "Math.max(deleted, byPercent)"]],
    tests: ["tests/conformance/memory-sink.test.ts"],
  },
  {
    name: "delete by key: any share of a target may go",
    file: "src/connectors/deletion-guard.ts",
    replace: [["(100 * deleted) / maxDeletePercent", "(100 * deleted) / Math.max(100, maxDeletePercent)"]],
    tests: ["tests/conformance/memory-sink.test.ts"],
  },
  {
    name: "delete by key: a row that cannot become a document counts as gone",
    file: "src/connectors/elasticsearch/documents.ts",
    replace: [["...refused.map(documentId)", "...refused.slice(1e9).map(documentId)"]],
    tests: ["tests/integration/documents.test.ts"],
  },
  {
    name: "search: a key is deleted although the batch has its row",
    file: "src/connectors/elasticsearch/documents.ts",
    replace: [["!present.has(id)", "!present.has(id.repeat(9))"]],
    tests: ["tests/search/elasticsearch-sink.test.ts"],
  },
  {
    name: "search: a delete by key has no version that grows with the claims",
    file: "src/connectors/elasticsearch/documents.ts",
    replace: [
      ["const lines = head + ", 'const lines = (document === undefined ? head.replace(/,"version.*/, "}}") : head) + '],
    ],
    tests: ["tests/search/deletes.test.ts"],
  },
  {
    name: "search: a request of nothing but deletes requires no alias",
    file: "src/connectors/elasticsearch/bulk.ts",
    replace: [["? [] : [HELD_TO_ALIAS]", "? [] : [HELD_TO_ALIAS].slice(1)"]],
    tests: ["tests/search/deletes.test.ts"],
  },
  {
    name: "search: a merge deletes a document that is no longer the one it read",
    file: "src/connectors/elasticsearch/merging-lines.ts",
    replace: [["({ delete: asRead })", "({ delete: { _id: asRead._id } })"]],
    tests: ["tests/search/deletes.test.ts"],
  },
  {
    name: "follow: only the old rows of a change are looked at",
    file: "src/sql-analysis/statements.ts",
    replace: [["this.#images(relation).changed", "this.#images(relation).old"]],
    tests: [FOLLOWING],
  },
  {
    name: "follow: only the new rows of a change are looked at",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [['from("(c.old), (c.new)")', 'from("(c.new)")']],
    tests: [FOLLOWING],
  },
  {
    name: "changes: a table that was emptied is followed by its rows",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [["bool_or(c.kind = 't') AS truncated", "bool_or(c.kind = 'none') AS truncated"]],
    tests: [FOLLOWING],
  },
  {
    name: "follow: keys and rows are read at different moments",
    file: "src/connectors/postgres/changes/follower.ts",
    replace: [
      [
        "await log.begin(client, beginning);",
        'await log.begin(client, beginning.replace("REPEATABLE READ", "READ COMMITTED"));',
      ],
    ],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "follow: what an aggregate or a window computes leads to keys",
    file: "src/sql-analysis/expressions.ts",
    replace: [
      [
        "if (isAggregate || over !== undefined) return NOT_PLAIN;",
        "if (isAggregate && over !== undefined) return NOT_PLAIN;",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: of the rows that have one key the last is written",
    file: "src/data-plane/commit.ts",
    replace: [["if (load.read.eachOnce && ", 'if (load.read.eachOnce && load.pipeline.mode !== "follow" && ']],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: a query may ask for the time",
    file: "src/sql-analysis/warnings.ts",
    replace: [["if (TIME.test(name) || TIME_VALUE.test(name)", "if (TIME_VALUE.test(name)"]],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: a query may ask who reads it",
    file: "src/sql-analysis/warnings.ts",
    replace: [["|| SESSION_VALUE.test(name))", "|| SESSION_VALUE.test(name.toLowerCase()))"]],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: a query may answer differently every time",
    file: "src/sql-analysis/warnings.ts",
    replace: [["...ofOthers])]", "...ofOthers.slice(1e9)])]"]],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: a query may take a sample",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [
      ["if (this.#reader.sampled.has(relation))", 'if (this.#reader.sampled.has(relation) && relation.name === "")'],
    ],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: a materialized view is read as a table",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [['if (relation.kind === "m")', 'if (relation.kind === "m" && label === "")']],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: a foreign table is read as one of our own",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [['if (relation.kind === "f")', 'if (relation.kind === "f" && label === "")']],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: row-level security is overlooked",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [["if (relation.hasRowSecurity) {", 'if (relation.hasRowSecurity && label === "") {']],
    tests: [FOLLOW_REFUSED],
  },
  {
    name: "follow: an unlogged table is followed",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [
      ["if (!relation.isUnlogged) return undefined;", 'if (!relation.isUnlogged || label !== "") return undefined;'],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: tables on the way are read without the rows they had",
    file: "src/sql-analysis/statements.ts",
    replace: [
      ["if (this.#isReadWithoutOld(relation)) return", 'if (this.#isReadWithoutOld(relation) || list !== "") return'],
    ],
    tests: [FOLLOWING],
  },
  {
    name: "follow: recorded values are compared without the collation of their column",
    file: "src/connectors/postgres/changes/images.ts",
    replace: [['facts?.ownCollation == null ? ""', 'facts?.ownCollation !== "" ? ""']],
    tests: [FOLLOW_ODD_VALUES],
  },
  {
    name: "follow: rows without a key are passed over",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [["mayLackKeys: keys.length < found.length", "mayLackKeys: keys.length > found.length"]],
    tests: [FOLLOW_ODD_VALUES],
  },
  {
    name: "follow: a key is told by a cast, in which its row has another text",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [
      [
        'names.map((name) => `k.${name}`).join(", ");\n  const nulls',
        'names.map((name) => `k.${name}::text`).join(", ");\n  const nulls',
      ],
    ],
    tests: [FOLLOW_ODD_VALUES],
  },
  {
    name: "sweep: a refused row is taken for a difference where a cast gives its key another text",
    file: "src/connectors/postgres/comparison.ts",
    replace: [["`f.${staged}`", "`f.${staged}::text`"]],
    tests: [SWEEPS],
  },
  {
    name: "rejects: behind a code task a key is looked for by a cast",
    file: "src/connectors/postgres/query-text.ts",
    replace: [["THEN format('%s', ${value}) END", "THEN (${value})::text END"]],
    tests: ["tests/integration/rejects.test.ts"],
  },
  {
    name: "watcher: columns that are altered while no row changes are overlooked",
    file: "src/connectors/postgres/changes/altered.ts",
    replace: [["|trigger of|shape of|", "|trigger of|"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "watcher: a view that is replaced while no row changes is overlooked",
    file: "src/connectors/postgres/changes/altered.ts",
    replace: [["|identity of|view) ", "|identity of) "]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "watcher: another configuration waits until the whole compares are long enough ago",
    file: "src/meta-store/postgres/follow.ts",
    replace: [["true) OR last.config_version < p.config_version)", "true))"]],
    tests: [FOLLOW_STATE],
  },
  {
    name: "sessions: times are printed as the database has it",
    file: "src/postgres/connection.ts",
    replace: [['DateStyle: "ISO, YMD"', 'DateStyle: "SQL, DMY"']],
    tests: [DATABASE_SETTINGS],
  },
  {
    name: "script: tables are taken out although a pipeline is left out that may follow them",
    file: "src/control-plane/follow/script.ts",
    replace: [["isComplete: remarks.length === 0", "isComplete: remarks.length >= 0"]],
    tests: ["tests/integration/api-follow.test.ts"],
  },
  {
    name: "script: a publication loses tables although a pipeline is left out that may follow them",
    file: "src/connectors/postgres/changes/slot/inspect.ts",
    replace: [["isComplete ? [] : surplus", "surplus.filter(() => false)"]],
    tests: ["tests/integration/slot-follow.test.ts"],
  },
  {
    name: "script: a table that is taken out keeps its entry, for which changes are kept",
    file: "src/connectors/postgres/changes/trigger-script.ts",
    replace: [["  DELETE FROM vitrina.tables t WHERE t.relation = wanted;\n", ""]],
    tests: [CHANGE_SCRIPT],
  },
  {
    name: "sessions: a round idles no longer than the database allows",
    file: "src/connectors/postgres/read-session.ts",
    replace: [['idle_in_transaction_session_timeout: "0",', ""]],
    tests: [DATABASE_SETTINGS],
  },
  {
    name: "sessions: transactions are isolated as the database has it",
    file: "src/postgres/session.ts",
    replace: [['default_transaction_isolation: "read committed"', 'default_transaction_isolation: "serializable"']],
    tests: [DATABASE_SETTINGS],
  },
  {
    name: "sessions: a NULL in an array is read as the database has it",
    file: "src/connectors/postgres/data-session.ts",
    replace: [['array_nulls: "on"', 'array_nulls: "off"']],
    tests: [DATABASE_SETTINGS],
  },
  {
    name: "sessions: a backslash in a string is read as the database has it",
    file: "src/postgres/session.ts",
    replace: [['standard_conforming_strings: "on"', 'standard_conforming_strings: "off"']],
    tests: [DATABASE_SETTINGS],
  },
  {
    name: "changes: two tables are recorded under one name",
    file: "src/domain/relation-name.ts",
    replace: [['/[."]/', '/["]/']],
    tests: [CHANGE_SCRIPT, "tests/domain/relation-name.test.ts"],
  },
  {
    name: "follow: somebody who drops a view in the middle of a round meets a deadlock",
    file: "src/connectors/postgres/changes/follower.ts",
    replace: [["IN ('r', 'p', 'v')", "IN ('r', 'p')"]],
    tests: [ALTERED_IN_ROUND],
  },
  {
    name: "watcher: a source that does not answer is waited for",
    file: "src/data-plane/follow/watcher.ts",
    replace: [["LONGEST_ANSWER_MS = 500;", "LONGEST_ANSWER_MS = 5_000_000;"]],
    tests: ["tests/integration/follow-watcher.test.ts"],
  },
  {
    name: "connection: a server that does not take its leave is waited for",
    file: "src/postgres/connection.ts",
    replace: [["END_TIMEOUT_MS = 5000;", "END_TIMEOUT_MS = 5_000_000;"]],
    tests: ["tests/integration/kept-sessions.test.ts"],
  },
  {
    name: "watcher: a server that went away without a word is waited for as long as a read may take",
    file: "src/connectors/postgres/changes/watch.ts",
    replace: [["Math.min(config.readTimeoutMs, ANSWERS_WITHIN_MS)", "config.readTimeoutMs + 0 * ANSWERS_WITHIN_MS"]],
    tests: ["tests/integration/follow-watcher.test.ts"],
  },
  {
    name: "follow: a source that was kept open and does not answer is waited for",
    file: "src/data-plane/follow/kept-sources.ts",
    replace: [["ANSWERS_WITHIN_MS = 5000;", "ANSWERS_WITHIN_MS = 5_000_000;"]],
    tests: ["tests/integration/kept-sources.test.ts"],
  },
  {
    name: "watcher: a change that was seen and is gone is not missed",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [['vanished("p.relations", "p.number",', 'vanished("p.relations", "NULL::bigint",']],
    tests: [RESTORED_SOURCE],
  },
  {
    name: "changes: what had been forgotten may be remembered",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [["WHERE t.forgotten IS NULL OR NOT", "WHERE t.relation = '' AND NOT"]],
    tests: [RESTORED_SOURCE],
  },
  {
    name: "watcher: another database of the same name is overlooked",
    file: "src/connectors/postgres/changes/altered.ts",
    replace: [["^(server|timeline|", "^(timeline|"]],
    tests: [RESTORED_SOURCE],
  },
  {
    name: "watcher: a standby that took over is overlooked",
    file: "src/connectors/postgres/changes/altered.ts",
    replace: [["^(server|timeline|", "^(server|"]],
    tests: [RESTORED_SOURCE],
  },
  {
    name: "watcher: row-level security that is switched on is overlooked",
    file: "src/connectors/postgres/changes/recording.ts",
    replace: [["md5(concat(s.relrowsecurity, s.columns,", "md5(concat(s.columns,"]],
    tests: [ALTERED_SOURCE],
  },
  {
    name: "changes: values are printed by a cast, which the owner of a table can make",
    file: "src/connectors/postgres/changes/recorder.ts",
    replace: [
      ["THEN format('%s', $", "THEN ($"],
      [") END`", ")::text END`"],
    ],
    tests: [CHANGE_SCRIPT],
  },
  {
    name: "changes: the owner of a partitioned table cannot add partitions to it any more",
    file: "src/connectors/postgres/changes/trigger-script.ts",
    replace: [["WHERE c.relkind = 'p' AND NOT", "WHERE c.relkind = 'x' AND NOT"]],
    tests: [CHANGE_SCRIPT],
  },
  {
    name: "changes: the script calls functions by the search path of whoever runs it",
    file: "src/connectors/postgres/changes/script.ts",
    replace: [["SET LOCAL search_path = pg_catalog, pg_temp;\n", ""]],
    tests: [CHANGE_SCRIPT],
  },
  {
    name: "changes: long values count as short ones",
    file: "src/connectors/postgres/changes/base-script.ts",
    replace: [["/ 1000 LOOP", "/ 1000000000 LOOP"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "follow: a query is not examined again when its source was altered",
    file: "src/connectors/postgres/changes/plan-query.ts",
    replace: [["if (!isExamined) await", 'if (!isExamined && query === "") await']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: expressions may get longer and longer while ways are searched",
    file: "src/sql-analysis/ways.ts",
    replace: [["spend(value.parts.length);", "spend(Math.min(1, value.parts.length));"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a LIMIT lets its columns through",
    file: "src/sql-analysis/read-query.ts",
    replace: [["isLimited(select) ? LIMITED : hasSets", "isLimited(select) && hasSets ? LIMITED : hasSets"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: GROUPING SETS let their columns through",
    file: "src/sql-analysis/read-query.ts",
    replace: [["hasSets ? GROUPING_SETS : undefined", "hasSets && by.length === 0 ? GROUPING_SETS : undefined"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a window may look at rows with other keys",
    file: "src/sql-analysis/ways.ts",
    replace: [
      [
        "block.partitions.find((partition) => !isHeldBy",
        "block.partitions.find((partition) => partition.isDistinct && !isHeldBy",
      ],
    ],
    tests: [FOLLOWING],
  },
  {
    name: "follow: DISTINCT ON may choose among rows with other keys",
    file: "src/sql-analysis/ways.ts",
    replace: [
      [
        "block.partitions.find((partition) => !isHeldBy",
        "block.partitions.find((partition) => !partition.isDistinct && !isHeldBy",
      ],
    ],
    tests: [FOLLOWING],
  },
  {
    name: "follow: DISTINCT ON chooses before the windows are computed",
    file: "src/sql-analysis/ways.ts",
    replace: [["other.isDistinct !== isDistinct", 'other.isDistinct !== isDistinct && of === ""']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: an outer join leads to its optional side",
    file: "src/sql-analysis/outer-joins.ts",
    replace: [
      ["return this.#isEntered(join.right) && (", "return this.#joins.length > 0 || ("],
      [
        "optional) => this.#isEntered(optional.side)",
        'optional) => optional.join.type !== "full" || this.#isEntered(optional.side)',
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: an inner join inside an optional side makes it obligatory",
    file: "src/sql-analysis/outer-joins.ts",
    replace: [
      [
        "const type = typeWith(node, needed);",
        "const type = typeWith(node, new Set([...needed, ...joinedInside(node.right)]));",
      ],
      [
        "const NONE:",
        'function joinedInside(node: JoinNode): readonly FromLeaf[] {\n  return node.kind === "leaf" ? [] : node.condition.notNull.map(({ leaf }) => leaf);\n}\n\nconst NONE:',
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: an expression over an optional side is crossed",
    file: "src/sql-analysis/outer-joins.ts",
    replace: [
      [
        "if (this.at === undefined) return false;",
        "if (this.at === undefined || this.#joins.length > 0) return false;",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a subquery in an ON inside an optional side counts as one of the row's",
    file: "src/sql-analysis/outer-joins.ts",
    replace: [["...(isOptional ? [node.condition] : []),", "...(isOptional ? [] : []),"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a subquery of a group counts on the rows of the group",
    file: "src/sql-analysis/outer-joins.ts",
    replace: [["if (!this.#hasTuple) return [];", "if (!this.#hasTuple && this.#joins.length > 1e9) return [];"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: an aggregate in a subquery is always the subquery's own",
    file: "src/sql-analysis/read-query.ts",
    replace: [["(hasAggregates && !isOfRows)", '(hasAggregates && !isOfRows && draft.computedBy !== "a subquery")']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: HAVING alone makes no group",
    file: "src/sql-analysis/read-query.ts",
    replace: [['(select["havingClause"] !== undefined || ', '((select["havingClause"] !== undefined && !by) || ']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: the empty grouping set has no row of its own",
    file: "src/sql-analysis/ways.ts",
    replace: [["|| block.grouping?.hasSets === true;", "|| (block.grouping?.hasSets === true && block.isDistinct);"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: the totals of GROUPING SETS are looked for in the tables",
    file: "src/sql-analysis/rows-of-query.ts",
    replace: [["block.grouping?.hasSets === true", "block.grouping?.hasSets === true && positions.length > 1e9"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: DISTINCT and set operations make rows of one partition one, and no others",
    file: "src/sql-analysis/ways.ts",
    replace: [
      ["return isTheSameInAll(position, value, link) ?", 'return isTheSameInAll(position, value, link) || of !== "" ?'],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a group is in the partition of each of its rows",
    file: "src/sql-analysis/ways.ts",
    replace: [
      ["by.every((one) => isOneInGroup(one, block))", 'by.every((one) => isOneInGroup(one, block) || of !== "")'],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: which day it is does not matter to a time of day",
    file: "src/connectors/postgres/changes/query-facts.ts",
    replace: [["|| dependsOnDay(row))", "|| (dependsOnDay(row) && !row))"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a query in a query on the way has all columns together",
    file: "src/sql-analysis/rows-of-query.ts",
    replace: [["|| !canBeRead({ ...connected, reached: outputs }, connected.leaves)", "|| outputs.length > 1e9"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: null partitions are no partitions",
    file: "src/sql-analysis/ways.ts",
    replace: [["this.#resolve(value, index, undefined), true);", "this.#resolve(value, index, undefined), false);"]],
    tests: [FOLLOWING],
  },
  {
    name: "follow: equal values count as the same",
    file: "src/sql-analysis/types.ts",
    replace: [
      [
        "return type?.isEqualImage === true && another?.isEqualImage === true && type.type === another.type;",
        "return type !== undefined && type.type === another?.type;",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: something is computed from one of several equal values",
    file: "src/sql-analysis/ways.ts",
    replace: [["if (expression.parts.length > 1) return this.#fail(ONLY_EQUAL);", ""]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: what a group is computed by counts as grouped",
    file: "src/sql-analysis/ways.ts",
    replace: [["grouping.by.some((one) => isColumn(one, use)) && isEqualImage(use)", "isEqualImage(use)"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: the branches of a set operation have its types",
    file: "src/sql-analysis/ways.ts",
    replace: [
      [
        "if (set !== undefined && typeOfOutput(set, position) === undefined)",
        "if (set !== undefined && set.names.length === 0)",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a series is taken before the equality that picks one of its numbers",
    file: "src/sql-analysis/connect.ts",
    replace: [
      [
        "const next = further.size > 0 ? further : withoutArguments(goal, ways, connection);",
        "const next = new Map([...withoutArguments(goal, ways, connection), ...further].slice(0, 1));",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: only the first part of an OR is followed",
    file: "src/sql-analysis/attempts.ts",
    replace: [["choice.map((part) => ({ steps, part }))", "choice.slice(0, 1).map((part) => ({ steps, part }))"]],
    tests: [FOLLOWING],
  },
  {
    name: "follow: an OR counts by those of its parts that have an equality",
    file: "src/sql-analysis/read-condition.ts",
    replace: [
      [
        "return parts.every(({ length }) => length > 0) ? parts : undefined;",
        "return parts.filter(({ length }) => length > 0);",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: IN compares what a set operation converts",
    file: "src/sql-analysis/ways.ts",
    replace: [["return isMixed && isConvertedInSteps(set, position)", "return isMixed && set.names.length === 0"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a set operation on the way is read with the types of its branches",
    file: "src/sql-analysis/rows-of-query.ts",
    replace: [["type === undefined || (", "type !== undefined && ("]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a way compares what has an equality of its own",
    file: "src/sql-analysis/ways.ts",
    replace: [
      [
        "if (own !== undefined) return { why: ownEquality(own) };",
        'if (own?.name === "") return { why: ownEquality(own) };',
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: only the first place of a table counts",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [["for (const place of places) {", "for (const place of places.slice(0, 1)) {"]],
    tests: [FOLLOWING],
  },
  {
    name: "follow: subqueries in expressions are overlooked",
    file: "src/sql-analysis/places.ts",
    replace: [["block.sublinks.flatMap(", "block.sublinks.slice(0, 0).flatMap("]],
    tests: [FOLLOWING],
  },
  {
    name: "follow: NOT IN is followed like IN",
    file: "src/sql-analysis/read-condition.ts",
    replace: [['junction["boolop"] !== "NOT_EXPR"', 'junction["boolop"] !== "NONE"']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: any COALESCE of two columns is the changed side's",
    file: "src/sql-analysis/ways.ts",
    replace: [["if (!isJoined || ", 'if ((!isJoined && full.type !== "full") || ']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a text that is used twice is restricted as one of its uses wants it",
    file: "src/sql-analysis/restrict.ts",
    replace: [["isSame ? restriction : undefined", "isSame ? restriction : known"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a table is restricted where its primary key is needed",
    file: "src/sql-analysis/restrict.ts",
    replace: [
      [
        "if (grouping === undefined) return false;",
        "if (grouping === undefined || grouping.by.length > 0) return false;",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a query is restricted by what is computed",
    file: "src/sql-analysis/restrict.ts",
    replace: [
      ["if (sole === undefined) return undefined;", ""],
      ["const at = leaf.columns?.indexOf(sole.column) ?? -1;", ""],
      [
        "const text = quoteIdentifier(relationOf(leaf)?.columns[at]?.name ?? sole.column);",
        'const text = leaf.alias === "" ? "" : (wanted?.parts ?? []).map((part) => (typeof part === "string" ? part : quoteIdentifier(part.column))).join("");',
      ],
      [
        "typeOfColumn(sole)?.type === column.type ? text",
        "sole !== undefined && typeOfColumn(sole)?.type === column.type ? text",
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a restricted table is read with all of its columns",
    file: "src/sql-analysis/restrict.ts",
    replace: [
      [
        "const columns = columnsOf(leaf, relation, reading.columnsNamed(relation));",
        'const columns = leaf.alias === "" ? columnsOf(leaf, relation, reading.columnsNamed(relation)) : "*";',
      ],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a column that USING converts is the one of its side",
    file: "src/sql-analysis/read-from.ts",
    replace: [["isOfOneType(one, other) ? side", "isOfOneType(one, one) ? side"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a cast to a type of its own equality is compared",
    file: "src/sql-analysis/expressions.ts",
    replace: [
      ["type === undefined || isOfOwnEquality", "type === undefined || (isOfOwnEquality && value.isPlain !== true)"],
    ],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a text of the query itself that becomes a time when it runs is let through",
    file: "src/connectors/postgres/changes/query-facts.ts",
    replace: [["if (castsTexts) return", "if (castsTexts && query === definition) return"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a text that is cast to a time may say today",
    file: "src/sql-analysis/warnings.ts",
    replace: [["return timesFromTexts.map(", "return timesFromTexts.slice(0, 0).map("]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: blanks at the end count as nothing",
    file: "src/connectors/postgres/changes/query-facts.ts",
    replace: [["o.opcintype <> 'bpchar'::regtype OR greatest", "o.opcintype <> 'json'::regtype OR greatest"]],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "follow: a sequence is read as a table",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [['relation.kind === "S"', 'relation.kind === "S" && label === ""']],
    tests: [FOLLOW_PLANS],
  },
  {
    name: "changes: blanks at the end of a value are not recorded",
    file: "src/connectors/postgres/changes/recorder.ts",
    replace: [[") END`;", ")::bpchar::text END`;"]],
    tests: ["tests/integration/change-values.test.ts"],
  },
  {
    name: "follow: the query is restricted around itself only",
    file: "src/sql-analysis/restrict.ts",
    replace: [["alias, on } of restrictions) {", "alias, on } of restrictions.slice(0, 0)) {"]],
    tests: ["tests/sql-analysis/index-scans.test.ts"],
  },
  {
    name: "follow: a row of another table restricts the query",
    file: "src/sql-analysis/restrict.ts",
    replace: [["way.leaves.length > 1 ||", "way.leaves.length > 9 ||"]],
    tests: [FOLLOWING],
  },
  {
    name: "changes: a transaction is skipped that was running at the position",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [[".xid >= pg_snapshot_xmin(", ".xid >= pg_snapshot_xmax("]],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "changes: a full change table is trusted",
    file: "src/connectors/postgres/changes/table-log.ts",
    replace: [["if (isFull)\n", "if (isFull && limit < 0)\n"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "changes: what was forgotten is not asked",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [["if (forgotten != null)", "if (forgotten === 0)"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "changes: a change that vanished is not missed",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [["return isTrue(vanished) ?", "return vanished === 0 ?"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a source that went back is not noticed",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [["if (isTrue(back))", "if (back === 0)"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a trigger that was off for a while is not noticed",
    file: "src/connectors/postgres/changes/fingerprint.ts",
    replace: [["enabled, xmin].join", "enabled, xmin.slice(0, 0)].join"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a table that was rewritten is not noticed",
    file: "src/connectors/postgres/changes/fingerprint.ts",
    replace: [["[oid, storage].join", "[oid, storage.slice(0, 0)].join"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a view that was replaced is not noticed",
    file: "src/connectors/postgres/changes/recording.ts",
    replace: [["md5(concat(r.ev_action, (", "md5(concat('', ("]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a renamed column of a view is not noticed",
    file: "src/connectors/postgres/changes/recording.ts",
    replace: [["a.attrelid = c.oid AND a.attnum > 0))) AS rule", "a.attrelid = c.oid AND a.attnum < -99))) AS rule"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: an altered enum or composite type is not noticed",
    file: "src/connectors/postgres/changes/fingerprint.ts",
    replace: [["collation, makeup].join", "collation, makeup?.slice(0, 0)].join"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a virtual column that is computed otherwise is not noticed",
    file: "src/connectors/postgres/changes/fingerprint.ts",
    replace: [["part.computed !== null", 'part.computed === ""']],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "slot: a partition that was taken out for a while is not noticed",
    file: "src/connectors/postgres/changes/recording.ts",
    replace: [["i.inhparent, i.xmin, CASE", "i.inhparent, CASE"]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "changes: 1.0 and 1.00 are taken for the same",
    file: "src/connectors/postgres/changes/recorder.ts",
    replace: [[" *= ", " IS NOT DISTINCT FROM "]],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "changes: the application's settings change what is recorded",
    file: "src/connectors/postgres/changes/recorder.ts",
    replace: [["\"extra_float_digits = '1'\",", ""]],
    tests: ["tests/integration/change-values.test.ts"],
  },
  {
    name: "changes: a missing column fails the write of the application",
    file: "src/connectors/postgres/changes/recorder.ts",
    replace: [["EXCEPTION WHEN OTHERS THEN", "EXCEPTION WHEN division_by_zero THEN"]],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: what a running transaction left out is forgotten",
    file: "src/connectors/postgres/changes/base-script.ts",
    replace: [["    LOCK TABLE vitrina.changes_1, vitrina.changes_2 IN ROW EXCLUSIVE MODE;\n", ""]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "changes: a change that is left out at the last moment is forgotten",
    file: "src/connectors/postgres/changes/base-script.ts",
    replace: [["(SELECT last_value FROM vitrina.change_number) > was.stop", "was.stop IS NULL"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "changes: raising the limit hides that it was reached",
    file: "src/connectors/postgres/changes/base-script.ts",
    replace: [["(SELECT last_value FROM vitrina.change_number) > state.stop", "state.stop IS NULL"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "changes: changes are forgotten that a reader has not seen",
    file: "src/connectors/postgres/changes/base-script.ts",
    replace: [["found.first_covering IS DISTINCT FROM 1", "found.first_covering IS NULL"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "changes: a function that somebody replaced leaves no trace",
    file: "src/connectors/postgres/changes/trigger-script.ts",
    replace: [["AND md5(p.prosrc) = t.body_md5", ""]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "changes: columns that were not recorded for a while leave no trace",
    file: "src/connectors/postgres/changes/trigger-script.ts",
    replace: [["AND (new_columns -> 'read') @> (t.columns -> 'read')", ""]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "changes: a column is recorded although somebody has changed it and not committed yet",
    file: "src/connectors/postgres/changes/trigger-script.ts",
    replace: [["IN SHARE ROW EXCLUSIVE MODE", "IN ACCESS SHARE MODE"]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "follow: a target in whose key different texts are equal will do",
    file: "src/connectors/postgres/target-table.ts",
    replace: [["load?.deletes === true ? looseKeyProblems", "load?.deletes === false ? looseKeyProblems"]],
    tests: [FOLLOW_ODD_VALUES],
  },
  {
    name: "changes: a trigger that is not always on will do",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [['rowTrigger.enabled !== "A"', 'rowTrigger.enabled === "D"']],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "changes: a standby is believed to tell what is running",
    file: "src/connectors/postgres/changes/change-table.ts",
    replace: [["SELECT CASE WHEN pg_is_in_recovery()\n", "SELECT CASE WHEN false\n"]],
    tests: ["tests/integration/change-standby.test.ts"],
  },
  {
    name: "recording: what another release installed will do",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["return tables.map((table) =>", "return tables.slice(tables.length).map((table) =>"]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "recording: a part without a trigger will do",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [
      ["has no trigger that records its changes.`)];", "has no trigger that records its changes.`)].slice(1);"],
    ],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "recording: an unlogged table will do",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["empties it silently.`)];", "empties it silently.`)].slice(1);"]],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "recording: any trigger of that name will do",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["is not the one that records changes.`)];", "is not the one that records changes.`)].slice(1);"]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "recording: any function of that name will do",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["is not the one that was installed.`)];", "is not the one that was installed.`)].slice(1);"]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "recording: columns that the query needs may be missing",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["return lacking.length === 0\n", "return lacking.length >= 0\n"]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "recording: a column may be gone that the trigger reads",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["if (gone.length > 0)", "if (gone.length > 1e9)"]],
    tests: ["tests/integration/change-script.test.ts"],
  },
  {
    name: "recording: the application's settings print a column that got another type",
    file: "src/connectors/postgres/changes/recording-problems.ts",
    replace: [["have another type by now.`)];", "have another type by now.`)].slice(1);"]],
    tests: [FOLLOW_ODD_VALUES],
  },
  {
    name: "changes: more of them are followed than the pipeline allows",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [["if (changes > limits.maxChanges)", "if (changes > limits.maxChanges + 1e9)"]],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "changes: more keys are gathered than the engine can take",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [["if (keys.length > limits.maxKeys)", "if (keys.length > limits.maxKeys + 1e9)"]],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "changes: one that could not be recorded concerns nobody",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [["if (incomplete !== undefined)", 'if (incomplete?.relation === "")']],
    tests: ["tests/integration/change-fingerprint.test.ts"],
  },
  {
    name: "changes: a table on which every row depends is followed like others",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [["if (whole !== undefined)", 'if (whole?.name === "")']],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "changes: a change table that somebody emptied is trusted",
    file: "src/connectors/postgres/changes/base-script.ts",
    replace: [["n.last_value > s.stop OR s.storage", "n.last_value > s.stop OR s.version < 0 AND s.storage"]],
    tests: ["tests/integration/change-forgetting.test.ts"],
  },
  {
    name: "follow: a table may be truncated under a round",
    file: "src/connectors/postgres/changes/follower.ts",
    replace: [["if (readable.length > 0)", "if (readable.length > 1e9)"]],
    tests: [ALTERED_IN_ROUND],
  },
  {
    name: "follow: keys that take too long to find stop the mart for ever",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [['const STATEMENT_TIMEOUT = "57014";', 'const STATEMENT_TIMEOUT = "none";']],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "follow: a key that cannot be computed stops the mart for ever",
    file: "src/connectors/postgres/changes/round.ts",
    replace: [["const DATA_EXCEPTION = /^22/;", "const DATA_EXCEPTION = /^none/;"]],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: most keys of a mart are read one by one",
    file: "src/data-plane/follow/execute-follow.ts",
    replace: [["if (rows >= enough) return found;", "if (rows >= 0) return found;"]],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: a target that somebody empties in the middle of a round goes for whole",
    file: "src/data-plane/follow/execute-follow.ts",
    replace: [
      [
        "  await requireSameTarget(load, load.progress.targetMark);\n",
        "  if (mark === undefined) await requireSameTarget(load, mark);\n",
      ],
    ],
    tests: [ALTERED_IN_ROUND],
  },
  {
    name: "sweep: what it found is forgotten when its run ends before the repair",
    file: "src/data-plane/follow/sweep.ts",
    replace: [["  await commit.noteCompareBegins(round.position, reason, session.tables);\n", ""]],
    tests: [FOLLOW_KILLS],
  },
  {
    name: "follow: changes are forgotten that a comparison has not reached",
    file: "src/meta-store/postgres/follow.ts",
    replace: [["(VALUES (f.position), (f.compare_position))", "(VALUES (f.position), (f.position))"]],
    tests: [FOLLOW_STATE],
  },
  {
    name: "slot: a commit that nobody can see yet is followed",
    file: "src/connectors/postgres/changes/slot/collect.ts",
    replace: [["this.#isOfRound = isShown && ", "this.#isOfRound = "]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: a position passes over commits that nobody can see yet",
    file: "src/connectors/postgres/changes/slot/collect.ts",
    replace: [["if (!isShown) this.firstInvisible", "if (!isShown && commitLsn < 0n) this.firstInvisible"]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: the position of a whole compare passes over commits that nobody can see yet",
    file: "src/connectors/postgres/changes/slot/slot-log.ts",
    replace: [
      ["lsn: confirmed, slotLsn", "lsn: readSnapshotText(snapshot).running.size === 0 ? written : confirmed, slotLsn"],
    ],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: what is visible and not on the disk yet is passed over",
    file: "src/connectors/postgres/changes/slot/slot-log.ts",
    replace: [["if (lsnNumber(flushed) >= lsnNumber(written)) return flushed;", 'if (written !== "") return flushed;']],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: the session that writes to the disk is waited for, whatever becomes of the server",
    file: "src/connectors/postgres/changes/slot/slot-log.ts",
    replace: [["withDeadline(own, FLUSHED_WITHIN_MS,", "withDeadline(own, 1000 * FLUSHED_WITHIN_MS,"]],
    tests: ["tests/integration/slot-changes.test.ts"],
  },
  {
    name: "slot: one that is past the position is trusted",
    file: "src/connectors/postgres/changes/slot/slot-log.ts",
    replace: [["lsnNumber(confirmed) <= lsnNumber(lsn)) return", "lsnNumber(confirmed) >= 0n) return"]],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: one that the server gave up is trusted",
    file: "src/connectors/postgres/changes/slot/problems.ts",
    replace: [["if (found.lost !== null)", 'if (found.lost === "")']],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: columns outside of the replica identity count as unchanged",
    file: "src/connectors/postgres/changes/slot/collect.ts",
    replace: [['relation.identity === "f" || relation.columns[place]?.isKey !== true', 'relation.identity === "f"']],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: a replica identity that lacks a column is not refused",
    file: "src/connectors/postgres/changes/slot/problems.ts",
    replace: [['part.identity !== "f" && !part.identityColumns', 'part.identity === "" && !part.identityColumns']],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: partitions may be published through their root",
    file: "src/connectors/postgres/changes/slot/problems.ts",
    replace: [["facts.publication?.isViaRoot === true", "facts.publication === undefined"]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: a partition without a replica identity is published as soon as it is made",
    file: "src/connectors/postgres/changes/slot/script.ts",
    replace: [["SELECT c.relkind = 'p' AND NOT EXISTS", "SELECT c.relkind = 'x' AND NOT EXISTS"]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: a publication may leave rows out",
    file: "src/connectors/postgres/changes/slot/problems.ts",
    replace: [["if (part.hasRowFilter)", 'if (part.hasRowFilter && name === "")']],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: it is moved to where the furthest pipeline is",
    file: "src/connectors/postgres/changes/slot/forget.ts",
    replace: [["lsn < least ? lsn : least", "lsn > least ? lsn : least"]],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: it keeps WAL for a pipeline for ever",
    file: "src/connectors/postgres/changes/slot/forget.ts",
    replace: [["- lsn > BigInt(keepBytes)", "- lsn > BigInt(keepBytes) * 1000n"]],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: a pipeline without changes holds it back",
    file: "src/connectors/postgres/changes/slot/watch.ts",
    replace: [["const FAR_BEHIND = 64n", "const FAR_BEHIND = 64_000n"]],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: what becomes visible without a further write is not noticed",
    file: "src/connectors/postgres/changes/slot/watch.ts",
    replace: [["if (firstInvisible === undefined) {", "if (end >= 0n) {"]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: a table is published while somebody writes it",
    file: "src/connectors/postgres/changes/slot/script.ts",
    replace: [["IN SHARE ROW EXCLUSIVE MODE;", "IN ACCESS SHARE MODE;"]],
    tests: [SLOT_CHANGES],
  },
  {
    name: "slot: a server that went back is followed on",
    file: "src/connectors/postgres/changes/slot/slot-log.ts",
    replace: [["lsnNumber(lsn) < lsnNumber(other)", "lsnNumber(lsn) < 0n"]],
    tests: [SLOT_KEEPING],
  },
  {
    name: "slot: transactions of another round of numbers count as this one's",
    file: "src/connectors/postgres/changes/slot/snapshot.ts",
    replace: [["return near - ROUND;", "return near;"]],
    tests: ["tests/domain/pgoutput.test.ts"],
  },
  {
    name: "follow: the position is moved before its keys are written",
    file: "src/data-plane/follow/execute-follow.ts",
    replace: [
      [
        "  const stop =\n    (await moveKeys(load, round, keys))",
        "  await session.moveTo(round.position, load.progress.targetMark, false);\n  const stop =\n    (await moveKeys(load, round, keys))",
      ],
    ],
    tests: [FOLLOW_KILLS],
  },
  {
    name: "follow: a runner that lost its lease moves the position back",
    file: "src/meta-store/postgres/checkpoints.ts",
    replace: [
      [
        "underLease(client, MOVE_FOLLOW_POSITION, [",
        'underLease(client, MOVE_FOLLOW_POSITION.replace("p.run_id = r.id", "p.id = r.pipeline_id").replace("AND p.lease_epoch = $3", "").replace("AND r.lease_expires_at > clock_timestamp()", ""), [',
      ],
    ],
    tests: ["tests/chaos/zombie-follow.test.ts"],
  },
  {
    name: "follow: a comparison that was interrupted ends with the position of its last part",
    file: "src/data-plane/follow/compare.ts",
    replace: [["session.moveTo(begun ?? now,", "session.moveTo(begun === null ? now : now,"]],
    tests: [FOLLOW_KILLS],
  },
  {
    name: "follow: a comparison continues although a view was altered since it was interrupted",
    file: "src/data-plane/follow/compare.ts",
    replace: [
      [
        "isDeepStrictEqual(comparePosition?.fingerprint, now.fingerprint)",
        "comparePosition !== null || isDeepStrictEqual(now, null)",
      ],
    ],
    tests: ["tests/integration/follow-stops.test.ts"],
  },
  {
    name: "follow: a target that lost its rows is followed on",
    file: "src/data-plane/follow/execute-follow.ts",
    replace: [["if (misfit !== undefined) {", 'if (misfit === "") {']],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: the position of another target is used",
    file: "src/data-plane/follow/execute-follow.ts",
    replace: [["if (state.fingerprint === fingerprint)", "if (state.fingerprint !== fingerprint.slice(1))"]],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: nobody looks how much a round deletes",
    file: "src/data-plane/follow/deletion-limit.ts",
    replace: [["guard, keys, async", "guard, keys.slice(keys.length), async"]],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: what was refused before stays, whatever becomes of its row",
    file: "src/data-plane/follow/move-keys.ts",
    replace: [["ofKeys(pipeline.id, named)", "ofKeys(pipeline.id, named.slice(named.length))"]],
    tests: [FOLLOW_RUNS],
  },
  {
    name: "follow: code tasks may change the key",
    file: "src/data-plane/kept-keys.ts",
    replace: [['pipeline.mode !== "follow" ||', 'pipeline.mode === "follow" ||']],
    tests: ["tests/integration/follow-tasks.test.ts"],
  },
  {
    name: "follow: a change starts what a person must look at",
    file: "src/meta-store/postgres/follow.ts",
    replace: [["(p.failure_may_pass OR", "(true OR"]],
    tests: [FOLLOW_STATE],
  },
  {
    name: "watcher: a run begins although it is known that nothing is recorded",
    file: "src/connectors/postgres/changes/watch.ts",
    replace: [["tables.some((table) => lacking.has(table))", "tables.some((table) => !table && lacking.has(table))"]],
    tests: ["tests/integration/follow-bulk-work.test.ts"],
  },
  {
    name: "watcher: the same of a slot",
    file: "src/connectors/postgres/changes/slot/watch.ts",
    replace: [["tables.some((table) => lacking.has(table))", "tables.some((table) => !table && lacking.has(table))"]],
    tests: ["tests/integration/slot-keeping.test.ts"],
  },
  {
    name: "follow: everything is compared every second",
    file: "src/meta-store/postgres/follow.ts",
    replace: [["CASE WHEN f.compares > 1 THEN", "CASE WHEN f.compares < 0 THEN"]],
    tests: [FOLLOW_STATE],
  },
  {
    name: "reconcile: a change on its way counts as a difference",
    file: "src/data-plane/reconcile.ts",
    replace: [['if (pipeline.mode !== "follow") return false;', 'if (pipeline.mode !== "full") return false;']],
    tests: ["tests/integration/follow-reconcile.test.ts"],
  },
  {
    name: "sweep: rows that the target refuses count as defects",
    file: "src/data-plane/follow/sweep.ts",
    replace: [["count - Math.max(refused, source.rows_refused)", "count - Math.min(refused, source.rows_refused, 0)"]],
    tests: [SWEEPS],
  },
  {
    name: "waiting: what comes due between a claim and the next look is overlooked",
    file: "src/meta-store/postgres/schedules.ts",
    replace: [["coalesce($2::timestamptz, '-infinity')", "greatest(clock.now, $2::timestamptz)"]],
    tests: ["tests/integration/waiting.test.ts"],
  },
  {
    name: "sweep: it compares before what is pending was followed",
    file: "src/data-plane/follow/execute-follow.ts",
    replace: [
      [
        "    const stop = await observer.timeStage(",
        "    if (state.sweepWanted) await sweep(session, round, state.sweepNext);\n    const stop = await observer.timeStage(",
      ],
    ],
    tests: [SWEEPS],
  },
  {
    name: "follow: a table may be named twice in follow.tables, and one of the two counts",
    file: "src/sql-analysis/plan-follow.ts",
    replace: [["      second === undefined\n", "      second === undefined || second !== first\n"]],
    tests: ["tests/sql-analysis/plan.test.ts"],
  },
  {
    name: "sweep: the last of its parts ends before the end",
    file: "src/connectors/postgres/comparison.ts",
    replace: [["parts === 1 ? undefined : rows[0]", "rows[0]"]],
    tests: [SWEEPS],
  },
  {
    name: "sweep: a part is compared with the whole target",
    file: "src/connectors/postgres/comparison.ts",
    replace: [["held: heldIn(whole, range)", "held: heldIn(whole, undefined)"]],
    tests: [SWEEPS],
  },
  {
    name: "sweep: it continues where it was although everything was compared since",
    file: "src/meta-store/postgres/checkpoints.ts",
    replace: [["sweep_next = CASE WHEN $8 THEN NULL ELSE f.sweep_next END", "sweep_next = f.sweep_next"]],
    tests: [SWEEPS],
  },
  {
    name: "sweep: ranges of a key that the target sorts otherwise",
    file: "src/connectors/postgres/comparison.ts",
    replace: [["part === undefined || !sortsAlike", "part === undefined || (sortsAlike && false)"]],
    tests: [SWEEPS],
  },
  {
    name: "sweep: the watermark of an incremental pipeline goes with it",
    file: "src/data-plane/load.ts",
    replace: [
      [
        'return scope === "everything" && pipeline.mode === "incremental" ? { ...pipeline, mode: "full" } : pipeline;',
        'return scope === "keys" && pipeline.mode === "incremental" ? { ...pipeline, mode: "full" } : pipeline;',
      ],
    ],
    tests: [SWEEPS],
  },
  {
    name: "follow: a mart that is made from itself may follow",
    file: "src/control-plane/validate/cycle.ts",
    replace: [['mode === "follow") ? "error"', 'mode === "unheard-of") ? "error"']],
    tests: ["tests/integration/api-follow.test.ts"],
  },
  {
    name: "follow: what the plan refuses is saved",
    file: "src/control-plane/validate/follow.ts",
    replace: [["of plan.refusals) {", "of plan.refusals.slice(1e9)) {"]],
    tests: ["tests/integration/api-follow.test.ts"],
  },
  {
    name: "follow: keys that a person wrote may touch anything",
    file: "src/connectors/postgres/changes/plan-query.ts",
    replace: [["if (!isWritten ||", "if (isWritten ||"]],
    tests: ["tests/integration/api-follow.test.ts"],
  },
  {
    name: "follow: nobody is told of a source that does not answer",
    file: "src/control-plane/metrics/follow-gauges.ts",
    replace: [["isSilent: true,", "isSilent: false,"]],
    tests: ["tests/integration/follow-gauges.test.ts"],
  },
  {
    name: "follow: a change that waits is not told",
    file: "src/connectors/postgres/changes/inspect-changes.ts",
    replace: [["AND NOT pg_visible_in_snapshot(c.xid, p.snapshot)", "AND pg_visible_in_snapshot(c.xid, p.snapshot)"]],
    tests: ["tests/integration/api-follow.test.ts"],
  },
  {
    name: "follow: a source that was altered since is gone on with",
    file: "src/data-plane/follow/kept-sources.ts",
    replace: [["follower.isCurrent().catch(() => false)", "follower.isCurrent().then(() => true, () => false)"]],
    tests: [FOLLOW_KEPT],
  },
  {
    name: "follow: the source of another configuration is gone on with",
    file: "src/data-plane/follow/kept-sources.ts",
    replace: [["kept.configVersion !== pipeline.config_version", "kept.configVersion > pipeline.config_version"]],
    tests: [FOLLOW_KEPT],
  },
  {
    name: "follow: a plan that was recreated counts as the one that was examined",
    file: "src/connectors/postgres/changes/follower.ts",
    replace: [["readShape(asked, named))) === planned", "readShape(asked, named))) === (planned && shape)"]],
    tests: ["tests/integration/change-table.test.ts"],
  },
  {
    name: "target: a session is taken over with what the run before left in it",
    file: "src/connectors/postgres/kept-sessions.ts",
    replace: [["= emptySession(client);", "= emptySession.length > 1 ? emptySession(client) : Promise.resolve();"]],
    tests: [KEPT_SESSIONS],
  },
  {
    name: "target: a session that is taken over has not the settings of a new one",
    file: "src/connectors/postgres/kept-sessions.ts",
    replace: [["await this.#resume(kept.client);", "if (this.#kept.size > 1e9) await this.#resume(kept.client);"]],
    tests: [KEPT_SESSIONS],
  },
  {
    name: "target: the run before can end a session that another has taken over",
    file: "src/connectors/postgres/kept-sessions.ts",
    replace: [["        unbind();\n", "        void unbind;\n"]],
    tests: [KEPT_SESSIONS],
  },
];
