import { pythonModule } from "./task-folder.ts";

/** The same tasks in both languages, for the tests of what they must have in common. */
const TYPESCRIPT = `
const bucket = [{ name: "bucket", type: "text" }];
export default ({ defineTask, z, RetryLater }) => [
  defineTask({ name: "later", description: "", run() { throw new RetryLater("the rates are not there yet", { delaySeconds: 90 }); } }),
  defineTask({ name: "same", description: "As it came.", run: (rows) => rows }),
  defineTask({ name: "copied", description: "", run: (rows) => rows.map((row) => ({ ...row })) }),
  defineTask({
    name: "longer", description: "", params: z.strictObject({ times: z.int(), tail: z.string().default("!") }),
    run: (rows, { params }) => rows.map((row) => ({ ...row, title: row.title + params.tail.repeat(params.times) })),
  }),
  defineTask({ name: "odd", description: "", run: (rows) => rows.filter((row) => row.n % 2 === 1) }),
  defineTask({ name: "twice", description: "", *run(rows) { for (const row of rows) { yield row; yield { ...row, n: -row.n }; } } }),
  defineTask({ name: "none", description: "", run: () => [] }),
  defineTask({ name: "added", description: "", columns: [...bucket, { name: "n", type: "int8" }], run: (rows) => rows.map((row) => ({ ...row, n: 9007199254740993n, bucket: "b" })) }),
  defineTask({ name: "only_title", description: "", columns: (input) => input.filter(({ name }) => name === "title"), run: (rows) => rows }),
  defineTask({ name: "no_rows", description: "", run: () => undefined }),
  defineTask({ name: "a_text", description: "", run: () => "rows" }),
  defineTask({ name: "no_objects", description: "", run: () => [1] }),
  defineTask({ name: "missing", description: "", run: (rows) => rows.map(({ n }, i) => (i === 1 ? { n } : { n, title: "" })) }),
  defineTask({ name: "undeclared", description: "", run: (rows) => rows.map((row) => ({ ...row, extra: 1 })) }),
  defineTask({ name: "wrong_type", description: "", run: (rows) => rows.map((row, i) => ({ ...row, title: i === 2 ? 5 : "x" })) }),
  defineTask({ name: "with_nul", description: "", run: (rows) => rows.map((row) => ({ ...row, title: "a\\0" })) }),
  defineTask({ name: "half_pair", description: "", run: (rows) => rows.map((row) => ({ ...row, title: "\\ud83d" })) }),
  defineTask({ name: "twin_columns", description: "", columns: () => [...bucket, ...bucket], run: (rows) => rows }),
  defineTask({ name: "no_columns", description: "", columns: () => [], run: (rows) => rows }),
  defineTask({ name: "injected", description: "", columns: [{ name: "x", type: "text); DROP TABLE t; --" }], run: (rows) => rows }),
  defineTask({ name: "unsaid", description: "", params: z.strictObject({ n: z.bigint().optional() }), run: (rows) => rows }),
  defineTask({ name: "raises", description: "", run(rows) { return dive(rows); } }),
];
function dive(rows) { throw new TypeError("no {n} " + rows.length); }
`;

const PYTHON = [
  pythonModule({
    same: "return rows",
    copied: "return [dict(row) for row in rows]",
    odd: "return [row for row in rows if row['n'] % 2 == 1]",
    twice: "for row in rows:\n    yield row\n    yield {**row, 'n': -row['n']}",
    none: "return []",
    no_rows: "pass",
    a_text: "return 'rows'",
    no_objects: "return [1]",
    missing: "return [{'n': row['n']} if i == 1 else {'n': row['n'], 'title': ''} for i, row in enumerate(rows)]",
    undeclared: "return [{**row, 'extra': 1} for row in rows]",
    wrong_type: "return [{**row, 'title': 5 if i == 2 else 'x'} for i, row in enumerate(rows)]",
    with_nul: "return [{**row, 'title': 'a\\0'} for row in rows]",
    half_pair: "return [{**row, 'title': '\\ud83d'} for row in rows]",
    raises: "return dive(rows)",
    later: "from vitrina_tasks import RetryLater\nraise RetryLater('the rates are not there yet', delay=90)",
  }),
  "def dive(rows):\n    raise TypeError('no {n} %d' % len(rows))\n",
  `
@task(name="longer", params={"times": {"type": "integer"}, "tail": {"type": "string", "default": "!"}})
def longer(rows, params):
    return [{**row, "title": row["title"] + params["tail"] * params["times"]} for row in rows]

@task(name="added", columns=[("bucket", "text"), ("n", "int8")])
def added(rows, params):
    return [{**row, "n": 9007199254740993, "bucket": "b"} for row in rows]

@task(name="only_title", columns=lambda columns, params: [column for column in columns if column[0] == "title"])
def only_title(rows, params):
    return rows

@task(name="twin_columns", columns=lambda columns, params: [("bucket", "text")] * 2)
def twin_columns(rows, params):
    return rows

@task(name="no_columns", columns=lambda columns, params: [])
def no_columns(rows, params):
    return rows

@task(name="injected", columns=[("x", "text); DROP TABLE t; --")])
def injected(rows, params):
    return rows
`,
].join("\n");

export const BOTH_LANGUAGES = { "all.mjs": TYPESCRIPT, "all.py": PYTHON };
