// The safeguards that npm run test:mutation takes out, one at a time, and the tests that must notice.
const ZOMBIE = "tests/chaos/zombie.test.ts";
const SEARCH_ZOMBIES = "tests/search/chaos/zombies.test.ts";
const LOST_TARGET = "tests/integration/lost-target.test.ts";
const LATE_COMMIT = "tests/chaos/late-commit.test.ts";

/**
 * `replace`: pairs of texts; each must occur in the file, and all its occurrences are replaced. A mutant must compile:
 * a condition is made constant in a way that the compiler does not see through. `needs`: a program without which its
 * tests are skipped.
 */
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
    replace: [["{ ...settings, ...OWN_NAMES }", "{ ...OWN_NAMES, ...settings, search_path: 'public, pg_catalog' }"]],
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
    replace: [["return resumed && incremental === undefined;", "return resumed && incremental !== undefined;"]],
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
    replace: [["if (mark === null || (", "if (mark !== undefined || ("]],
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
    file: "src/data-plane/executor.ts",
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
        "columns.filter(({ name }) => key.every((one) => one.name !== name)).map(({ name }) => `",
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
    file: "src/data-plane/executor.ts",
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
    replace: [["conversion === undefined ? `t.", "conversion !== null ? `t."]],
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
    tests: [LATE_COMMIT],
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
    tests: [LATE_COMMIT],
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
    file: "src/meta-store/migrations/0004_engine.sql",
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
    replace: [
      [
        "const findings = await examine(query, rules.allowedSchemas);\n  if (findings.length > 0)",
        "const findings = await examine(query, rules.allowedSchemas);\n  if (findings.length > 1e9)",
      ],
    ],
    tests: ["tests/sql-guard/corpus.test.ts", "tests/integration/guarded-queries.test.ts"],
  },
  {
    name: "query guard: what the source makes of a query is not looked at",
    file: "src/sql-guard/guard.ts",
    replace: [
      [
        "const findings = await audit(session, query, rules.allowedSchemas);\n  if (findings.length > 0)",
        "const findings = await audit(session, query, rules.allowedSchemas);\n  if (findings.length > 1e9)",
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
      ["return body != null && (await callsOthers(session, body));", "return body != null && callsOthers.length > 9;"],
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
    replace: [["total.relations += times * relations;", "total.relations += times;"]],
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
    file: "src/data-plane/executor.ts",
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
];
