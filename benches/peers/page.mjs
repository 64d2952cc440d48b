// benches/PEERS.md, from what was measured.
import { SCENARIOS } from "./work.mjs";

const OURS = "Vitrina";

export function resultLine(name, [{ seconds, cpu }]) {
  return `${name.padEnd(16)} ${seconds.toFixed(2).padStart(8)} s  ${cpu.toFixed(2).padStart(8)} s of processor time`;
}

/** What Vitrina aims at, as how many times faster than another tool it is; by hand, how many times slower at most. */
const AIMS = [
  { scenario: "first load", peer: "psql COPY pipe", most: 1.7 },
  { scenario: "first load", peer: "Sling", least: 2.3 },
  { scenario: "first load", peer: "dlt", least: 7 },
  { scenario: "first load", peer: "pgloader", least: 3 },
  { scenario: "1 % changed", peer: "Sling", least: 1.5 },
  { scenario: "load through code", peer: "dlt", least: 3 },
];

export function peersPage({ machine, rows, changedRows, rounds, tools, medians }) {
  const names = tools.opened.map(({ name }) => name);
  const cell = (scenario, name) => {
    const found = medians.get(`${scenario}/${name}`);
    return found === undefined ? "–" : `${found.seconds.toFixed(2)} (${found.cpu.toFixed(2)})`;
  };
  const scenarioRow = ({ name, does }) => `| ${name}: ${does} | ${names.map((tool) => cell(name, tool)).join(" | ")} |`;
  return `# Results of \`npm run bench -- --peers\`

Written by the bench itself; do not edit. Each tool copies the same table of seven columns from one database of a server to
another one, with the settings that it comes with, by the command that a user would type; measured is the whole command, in
seconds, and in brackets the seconds that all processors worked meanwhile, those of the server included. Medians of
${rounds} rounds, the tools one after the other in alternating order. After each load the target is compared with the
source. ${rows.toLocaleString("en")} rows, but ${changedRows.toLocaleString("en")} where 1 % of them have changed. Vitrina's API and runner are
running, as they always do; its command is \`vitrina run NAME --wait\`. The tools: \`benches/peers/tools.mjs\`.

${machine.lines.map((line) => `- ${line}`).join("\n")}
${tools.opened.map(({ name, version }) => `- ${name} ${version}`).join("\n")}

| | ${names.join(" | ")} |
| --- | ${names.map(() => "---:").join(" | ")} |
${SCENARIOS.map(scenarioRow).join("\n")}

| Vitrina against | measured | aim | |
| --- | ---: | ---: | --- |
${AIMS.flatMap((aim) => aimRow(aim, medians)).join("\n")}
${notMeasured(tools)}`;
}

function aimRow({ scenario, peer, least, most }, medians) {
  const [ours, theirs] = [OURS, peer].map((name) => medians.get(`${scenario}/${name}`)?.seconds);
  if (ours === undefined || theirs === undefined) return [];
  const value = most === undefined ? theirs / ours : ours / theirs;
  const reached = most === undefined ? value >= least : value <= most;
  const [what, aim] = most === undefined ? ["times as fast", `≥ ${least}`] : ["times as long", `≤ ${most}`];
  return [
    `| ${peer}, ${scenario} | ${value.toFixed(2)} ${what} | ${aim} | ${reached ? "reached" : "**not reached**"} |`,
  ];
}

function notMeasured({ opened, missing }) {
  const lines = [
    ...missing.map(({ name, reason }) => `- ${name}: ${reason}`),
    ...opened.flatMap(({ name, failed }) => (failed === undefined ? [] : [`- ${name}, ${failed}`])),
  ];
  return lines.length === 0 ? "" : `\nNot measured:\n\n${lines.join("\n")}\n`;
}
