// The output of the bench: lines on the screen, and RESULTS.md.
import { cpus, totalmem } from "node:os";
import { median } from "./statistics.mjs";

const SETTINGS = [
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "data_checksums",
  "shared_buffers",
  "max_wal_size",
];
const COMMITS = 100;

export async function describeMachine({ admin }) {
  const { rows } = await admin.query(
    `SELECT current_setting('server_version') AS version,
            (SELECT string_agg(name || ' ' || current_setting(name), ', ') FROM unnest($1::text[]) name) AS settings`,
    [SETTINGS],
  );
  const commitMs = await timeOfCommit(admin);
  const lines = [
    `${cpus().length} processor cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory, ${process.platform}`,
    `PostgreSQL ${rows[0].version} with ${rows[0].settings}; Node.js ${process.versions.node}`,
    `a commit of one row takes ${commitMs.toFixed(1)} ms (median of ${COMMITS}): the time to flush the WAL to this disk`,
  ];
  return { lines, commitMs };
}

async function timeOfCommit(admin) {
  await admin.query("CREATE TABLE public.commits (n int)");
  const times = [];
  for (let n = 0; n < COMMITS; n++) {
    const startedAt = performance.now();
    await admin.query("INSERT INTO public.commits VALUES (1)");
    times.push(performance.now() - startedAt);
  }
  await admin.query("DROP TABLE public.commits");
  return median(times);
}

export function ratioLine({ name, value, least, most, target, reached }) {
  const spread = `${least.toFixed(2)} … ${most.toFixed(2)}`;
  return `${name.padEnd(16)} ${value.toFixed(2).padStart(6)}  (${spread})  aim ≤ ${target}  ${reached ? "reached" : "NOT REACHED"}`;
}

export function measuredLine(name, measurements, unit = "ms") {
  const value = median(measurements.map(({ ms }) => ms));
  const number = unit === "ms" ? Math.round(value).toLocaleString("en") : value.toFixed(2);
  const note = measurements.at(-1)?.note;
  return `${name.padEnd(26)} ${number.padStart(8)} ${unit}${note === undefined ? "" : `   ${note}`}`;
}

/** `remarks` says, by the name of a ratio, why it misses its target. */
export function resultsPage({ machine, rows, rounds, groups, remarks, skipped }) {
  const ratios = groups.flatMap((group) => group.ratios);
  const measured = new Map(groups.flatMap((group) => [...group.measured]));
  const medianOf = (name) => median(measured.get(name).map(({ ms }) => ms));
  return `# Results of \`npm run bench\`

Written by the bench itself; do not edit. Ours and the references ran interleaved, ${rounds} rounds, in one run on one
PostgreSQL server of the bench's own. A ratio is the median time of ours ÷ the median time of the reference; the spread
is that of the single rounds. ${rows.toLocaleString("en")} rows of eight columns (bigint, uuid, text, numeric, integer, boolean, text[],
timestamptz with microseconds) unless said; the source has its primary key and an index on (modified, id). The runner
is a process of its own, started as a user would start it; its time is that of the run, from claim to end. What it is
compared with: \`benches/support/references.mjs\`.

${machine.lines.map((line) => `- ${line}`).join("\n")}

| ratio | measured | spread | aim | |
| --- | ---: | ---: | ---: | --- |
${ratios.map(ratioRow).join("\n")}
${missedSection(ratios, remarks, { medianOf, rows, commitMs: machine.commitMs })}${skippedSection(skipped)}
## Medians behind the ratios

The remarks are those of the last round.

${groups.map(measuredSection).join("\n\n")}
`;
}

function ratioRow({ title, value, least, most, target, reached }) {
  const cells = [title, value.toFixed(2), `${least.toFixed(2)} … ${most.toFixed(2)}`, `≤ ${target}`];
  return `| ${cells.join(" | ")} | ${reached ? "reached" : "**not reached**"} |`;
}

function missedSection(ratios, remarks, facts) {
  const missed = ratios.filter(({ reached }) => !reached);
  if (missed.length === 0) return "";
  const lines = missed.map(({ name, title }) => `- ${title}: ${remarks[name]?.(facts) ?? "not explained yet."}`);
  return `\nNot reached, because:\n\n${lines.join("\n")}\n`;
}

function skippedSection(skipped) {
  if (skipped.length === 0) return "";
  return `\nNot measured:\n\n${skipped.map(({ name, reason }) => `- ${name}: ${reason}`).join("\n")}\n`;
}

function measuredSection({ name, unit, measured }) {
  const lines = [...measured].map(([step, measurements]) => measuredLine(step, measurements, unit));
  return `${name}:\n\n\`\`\`text\n${lines.join("\n")}\n\`\`\``;
}
