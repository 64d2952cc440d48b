// npm run bench -- --peers: the same work by other tools, on the same server, one after the other, in one run.
import { readFile, writeFile } from "node:fs/promises";
import { describeMachine } from "../support/report.mjs";
import { median } from "../support/statistics.mjs";
import { openWorld } from "../support/world.mjs";
import { peersPage, resultLine } from "./page.mjs";
import { TOOLS } from "./tools.mjs";
import { changeOnePercent, createTable, SCENARIOS, sumOf, TABLE } from "./work.mjs";

const TICKS_PER_SECOND = 100;

/** Seconds that all processors have worked, for whatever program: the tools do a part of their work in the server. */
async function processorSeconds() {
  const [user, nice, system] = (await readFile("/proc/stat", "utf8"))
    .split("\n")[0]
    .trim()
    .split(/\s+/)
    .slice(1, 4)
    .map(Number);
  return (user + nice + system) / TICKS_PER_SECOND;
}

async function measured(admin, work) {
  await admin.query("CHECKPOINT");
  const before = await processorSeconds();
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1000;
  return { seconds, cpu: (await processorSeconds()) - before };
}

async function openTools(context) {
  const opened = [];
  const missing = [];
  for (const { name, open } of TOOLS) {
    try {
      opened.push({ name, ...(await open(context)) });
    } catch (error) {
      missing.push({ name, reason: error.message.split("\n").slice(0, 2).join(" ") });
      console.log(`${name} is not measured: ${error.message}`);
    }
  }
  return { opened, missing };
}

/** A tool that fails, or whose target is not what it should be, is measured no further. */
async function measureStep(context, tool, scenario, results) {
  const { client, source } = context;
  if (tool.steps[scenario.name] === undefined || tool.failed !== undefined) return;
  try {
    const result = await measured(client, () => tool.steps[scenario.name](context));
    const wanted = await sumOf(source, TABLE, scenario.expected);
    if ((await sumOf(client, tool.targetOf(scenario.name))) !== wanted)
      throw new Error("its target is not what was read");
    const key = `${scenario.name}/${tool.name}`;
    results.set(key, [...(results.get(key) ?? []), result]);
    console.log(`  ${resultLine(tool.name, [result])}`);
  } catch (error) {
    tool.failed = `${scenario.name}: ${error.message.split("\n").slice(0, 3).join(" ")}`;
    console.log(`  ${tool.name} failed: ${error.message}`);
  }
}

export async function runPeers({ rows, rounds, changedRows, isWhole }) {
  const world = await openWorld(0);
  const { admin: client, elsewhere: source } = world;
  const results = new Map();
  const targetUrl = world.runnerEnvironment.DATABASE_URL;
  const sourceUrl = targetUrl.replace(/\/bench(?=$|\?)/, "/elsewhere");
  const context = { world, client, source, sourceUrl, targetUrl, sourceName: "elsewhere" };
  let tools;
  try {
    const machine = await describeMachine(world);
    await client.query("CREATE SCHEMA peers");
    await createTable(source, rows);
    tools = await openTools(context);
    for (let round = 0; round < rounds; round++) {
      for (const scenario of SCENARIOS.filter(({ name }) => name !== "1 % changed")) {
        console.log(`${scenario.name}, round ${round + 1}`);
        if (scenario.name === "first load") for (const tool of tools.opened) await tool.forget?.(context);
        // In alternating order, so that no tool always comes first.
        for (const tool of round % 2 === 0 ? tools.opened : [...tools.opened].reverse())
          await measureStep(context, tool, scenario, results);
      }
    }
    await measureChanges(context, tools.opened, { rows: changedRows, rounds }, results);
    const medians = new Map(
      [...results].map(([key, all]) => [
        key,
        {
          seconds: median(all.map(({ seconds }) => seconds)),
          cpu: median(all.map(({ cpu }) => cpu)),
          rounds: all.length,
        },
      ]),
    );
    const page = peersPage({ machine, rows, changedRows, rounds, tools, medians });
    if (isWhole) await writeFile(new URL("../PEERS.md", import.meta.url), page);
    else console.log(page);
  } finally {
    for (const tool of tools?.opened ?? []) await tool.close().catch((error) => console.error(error.message));
    await world.close();
  }
}

async function measureChanges(context, tools, { rows, rounds }, results) {
  const { source, client } = context;
  const scenario = SCENARIOS.find(({ name }) => name === "1 % changed");
  await source.query(`DROP TABLE ${TABLE}`);
  await createTable(source, rows);
  const able = tools.filter(({ steps, failed }) => steps[scenario.name] !== undefined && failed === undefined);
  for (const tool of able) {
    await tool.forget?.(context);
    // Without an incremental load of its own, it begins with what its full load has left.
    await (tool.prepareChanges ?? tool.steps["first load"])(context);
  }
  for (let round = 0; round < rounds; round++) {
    console.log(`${scenario.name}, round ${round + 1}`);
    await changeOnePercent(source);
    for (const tool of round % 2 === 0 ? able : [...able].reverse()) {
      await client.query(`ANALYZE ${tool.targetOf(scenario.name)}`);
      await measureStep(context, tool, scenario, results);
    }
  }
}
