// What the bench has to say: a table on the screen, and RESULTS.md.
import { cpus, totalmem } from "node:os";
import { median } from "./statistics.mjs";

const WHAT_IS_SET = [
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "data_checksums",
  "shared_buffers",
  "max_wal_size",
];

export async function describeMachine({ admin }) {
  const { rows } = await admin.query(
    `SELECT current_setting('server_version') AS version,
            (SELECT string_agg(name || ' ' || current_setting(name), ', ') FROM unnest($1::text[]) name) AS settings`,
    [WHAT_IS_SET],
  );
  return [
    `${cpus().length} processor cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory, ${process.platform}`,
    `PostgreSQL ${rows[0].version} (${rows[0].settings}), Node.js ${process.versions.node}`,
  ];
}

export function ratioLine({ name, value, least, most, target, reached }) {
  const spread = `${least.toFixed(2)} … ${most.toFixed(2)}`;
  return `${name.padEnd(16)} ${value.toFixed(2).padStart(6)}  (${spread})  aim ≤ ${target}  ${reached ? "reached" : "NOT REACHED"}`;
}

export function timeLine(name, measurements, unit = "ms") {
  const values = measurements.map(({ ms }) => ms);
  const note = measurements.at(-1)?.note;
  const number = unit === "ms" ? Math.round(median(values)).toLocaleString("en") : median(values).toFixed(2);
  return `${name.padEnd(26)} ${number.padStart(8)} ${unit}${note === undefined ? "" : `   ${note}`}`;
}

/** `groups`: what each group measured; `remarks`: by the name of a ratio, why it is not reached. */
export function resultsPage({ machine, rows, rounds, groups, remarks, skipped }) {
  const number = rows.toLocaleString("en");
  return `# Results of \`npm run bench\`

Written by the bench itself; do not edit. Ours and the reference ran interleaved, ${rounds} rounds, in one run on
one PostgreSQL server of the bench's own. A ratio is the median time of ours ÷ the median time of the reference;
the spread is that of single rounds. ${number} rows of eight columns (bigint, uuid, text, numeric, integer, boolean, text[],
timestamptz) unless said. The runner is a process of its own, started as a user would; its time is the run's own, from
claim to end. References: \`support/references.mjs\`.

${machine.map((line) => `- ${line}`).join("\n")}

| ratio | measured | spread | aim | |
| --- | ---: | ---: | ---: | --- |
${groups.flatMap(({ ratios }) => ratios.map(ratioRow)).join("\n")}
${remarksSection(groups, remarks)}${skippedSection(skipped)}
## Medians behind the ratios

${groups.map(measuredSection).join("\n\n")}
`;
}

function ratioRow({ title, value, least, most, target, reached }) {
  const cells = [title, value.toFixed(2), `${least.toFixed(2)} … ${most.toFixed(2)}`, `≤ ${target}`];
  return `| ${cells.join(" | ")} | ${reached ? "reached" : "**not reached**"} |`;
}

function remarksSection(groups, remarks) {
  const missed = groups.flatMap(({ ratios }) => ratios).filter(({ reached }) => !reached);
  if (missed.length === 0) return "";
  const lines = missed.map(({ name, title }) => `- ${title}: ${remarks[name] ?? "not explained yet."}`);
  return `\nNot reached, because:\n\n${lines.join("\n")}\n`;
}

function skippedSection(skipped) {
  if (skipped.length === 0) return "";
  return `\nNot measured:\n\n${skipped.map(({ name, reason }) => `- ${name}: ${reason}`).join("\n")}\n`;
}

function measuredSection({ name, unit, measured }) {
  const lines = [...measured].map(([step, measurements]) => timeLine(step, measurements, unit));
  return `${name}:\n\n\`\`\`\n${lines.join("\n")}\n\`\`\``;
}
