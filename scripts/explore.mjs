// Runs the random tests again and again with new seeds, until the time is up. npm run explore -- --help
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const HELP = `npm run explore [-- options] [part of a file's name …]

Runs every random test (or those whose file has one of the parts in its name) in rounds. Each round has a seed of its
own, which it prints. npm test draws from a fixed seed; this is where new ones are tried.

  --minutes <n>   stop after the round in which so much time is over (10)
  --factor <n>    try each property so many times as often as npm test does (10)
  --seed <n>      one round with this seed, to see a failure again
  --help          this text

When a round fails:
  1. See it again: npm run explore -- --seed <the seed> <the file>
  2. fast-check names the smallest input it found. Write that down as an example of its own, a test that fails without
     the fix: a query into tests/sql-guard/hostile.ts or benign.ts, anything else as a case beside the property. Where
     that cannot be, give it to the property: fc.assert(property, { examples: [[input]] }).
  3. Mend the cause. npm test then tries the example every time.
`;

function filesWithRandomTests(parts) {
  return readdirSync(join(root, "tests"), { recursive: true })
    .map((name) => join("tests", String(name)))
    .filter((name) => name.endsWith(".test.ts") && !name.startsWith(join("tests", "search")))
    .filter((name) => /"fast-check"|seededRandom\(/.test(readFileSync(join(root, name), "utf8")))
    .filter((name) => parts.length === 0 || parts.some((part) => name.includes(part)));
}

/** True when all tests passed. */
function explore(seed, factor, files) {
  console.log(`== seed ${seed}`);
  const env = { ...process.env, EXPLORE_SEED: String(seed), EXPLORE_FACTOR: String(factor) };
  const args = ["node_modules/vitest/vitest.mjs", "run", `--testTimeout=${60_000 * Math.max(1, factor)}`, ...files];
  const { status } = spawnSync(process.execPath, args, { cwd: root, env, stdio: "inherit" });
  if (status !== 0) console.log(`== seed ${seed} FAILED; see it again: npm run explore -- --seed ${seed}`);
  return status === 0;
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: "10" },
      factor: { type: "string", default: "10" },
      seed: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const files = filesWithRandomTests(positionals);
  if (files.length === 0) throw new Error(`no file with a random test has ${positionals.join(" or ")} in its name.`);
  const [minutes, factor] = [values.minutes, values.factor].map(Number);
  if (!(minutes > 0 && factor > 0)) throw new Error("--minutes and --factor are numbers above 0.");
  console.log(`exploring with ${files.join(", ")}`);

  const end = Date.now() + minutes * 60_000;
  const failed = [];
  let rounds = 0;
  do {
    const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
    if (!explore(seed, factor, files)) failed.push(seed);
    rounds += 1;
  } while (values.seed === undefined && Date.now() < end);
  console.log(`${rounds} rounds, ${failed.length} failed${failed.length > 0 ? `: seeds ${failed.join(", ")}` : ""}`);
  return failed.length === 0 ? 0 : 1;
}

try {
  process.exitCode = main();
} catch (error) {
  console.error(`explore: ${error.message}`);
  process.exitCode = 2;
}
