// npm run bench [-- --quick] [-- --only NAME]: what Vitrina costs compared with the same work written by hand; with --peers,
// compared with other tools.
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

// Compiles the sources if they have changed, so they must not be imported before this.
execFileSync(process.execPath, [fileURLToPath(new URL("../scripts/prepare.mjs", import.meta.url))], {
  stdio: "inherit",
});
const { describeMachine, measuredLine, ratioLine, resultsPage } = await import("./support/report.mjs");
const { openWorld } = await import("./support/world.mjs");
const { startRunner } = await import("./support/runner.mjs");
const { ratioOf } = await import("./support/statistics.mjs");
const { REMARKS } = await import("./remarks.mjs");
const GROUPS = await Promise.all(
  [
    "same-database",
    "two-databases",
    "changes",
    "follow",
    "follow-keys",
    "growth",
    "many-pipelines",
    "idle",
    "api-load",
    "command-line",
    "search",
  ].map(async (name) => (await import(`./groups/${name}.mjs`)).default),
);

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    peers: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    rows: { type: "string" },
    rounds: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const names = GROUPS.flatMap(({ ratios }) => ratios.map(({ name }) => name));
const unknown = options.only.filter((name) => !names.includes(name));
if (options.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`There is no ratio ${unknown.join(", ")}.`);
  console.error(
    `npm run bench -- [--quick] [--only NAME]… [--rows N] [--rounds N]\nnpm run bench -- --peers [--quick] [--rows N] [--rounds N]\nNAME is one of: ${names.join(", ")}`,
  );
  process.exit(options.help ? 0 : 2);
}
const rows = Number(options.rows ?? (options.quick ? 100_000 : 1_000_000));
const rounds = Number(options.rounds ?? (options.quick ? 2 : 5));
const skipped = [];

if (options.peers) {
  const { runPeers } = await import("./peers/run.mjs");
  await runPeers({ rows, rounds, changedRows: rows / 4, isWhole: !options.quick && options.rows === undefined });
  process.exit();
}

console.log(`Making ${rows.toLocaleString("en")} rows …`);
const world = await openWorld(rows);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => leave().finally(() => process.exit(130)));
try {
  const machine = await describeMachine(world);
  console.log(machine.lines.join("\n"));
  world.runner = await startRunner(world);
  const groups = [];
  for (const group of GROUPS) {
    const wanted = group.ratios.filter(({ name }) => options.only.length === 0 || options.only.includes(name));
    if (wanted.length === 0 || (group.onlyInFullBench && options.quick && options.only.length === 0)) continue;
    const measured = await measureGroup(group, wanted).catch((error) => skipGroup(group, error));
    if (measured !== undefined) groups.push(measured);
  }
  const isWhole = options.only.length === 0 && !options.quick;
  if (isWhole) {
    const page = resultsPage({ machine, rows, rounds, groups, remarks: REMARKS, skipped });
    await writeFile(new URL("./RESULTS.md", import.meta.url), page);
  }
  console.log(isWhole ? "\nWritten to benches/RESULTS.md." : "\nOnly a whole bench writes benches/RESULTS.md.");
} finally {
  await leave();
}

async function leave() {
  await world.runner?.stop();
  await world.close();
}

function skipGroup({ name, optional }, error) {
  if (!optional) throw error;
  skipped.push({ name, reason: error.message });
  console.log(`  skipped: ${error.message}`);
}

async function measureGroup(group, ratios) {
  console.log(`\n${group.name}`);
  const needed = new Set(ratios.flatMap(({ ours, reference }) => [ours, reference]));
  const steps = group.steps.filter(({ gives }) => gives.some((name) => needed.has(name)));
  const measured = new Map();
  await group.setUp?.(world);
  for (let round = 0; round < Math.min(rounds, group.maxRounds ?? rounds); round++) {
    // In alternating order, so that no side always comes first.
    for (const step of round % 2 === 0 ? steps : [...steps].reverse()) await measureStep(step, round, measured);
    process.stdout.write(".");
  }
  console.log();
  await group.tearDown?.(world);
  for (const [name, measurements] of measured) console.log(`  ${measuredLine(name, measurements, group.unit)}`);
  const results = ratios.flatMap((ratio) => ratioOf(ratio, measured) ?? []);
  for (const result of results) console.log(`  → ${ratioLine(result)}`);
  return { name: group.name, unit: group.unit, measured, ratios: results };
}

async function measureStep(step, round, measured) {
  if (skipped.some(({ name }) => step.gives.includes(name))) return;
  try {
    const results = await step.measure(world, round);
    for (const [name, result] of Object.entries(results)) measured.set(name, [...(measured.get(name) ?? []), result]);
  } catch (error) {
    if (!step.optional) throw error;
    for (const name of step.gives) skipped.push({ name, reason: error.message });
    console.log(`  skipped ${step.gives.join(", ")}: ${error.message}`);
  }
}
