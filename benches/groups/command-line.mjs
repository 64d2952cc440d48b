// What a command costs to start, in processor time: scripts call it again and again.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { startApi } from "../support/server.mjs";

const COMMAND = fileURLToPath(new URL("../../bin/vitrina.mjs", import.meta.url));
/** The system counts in hundredths of a second. */
const TIMES = 20;
const TICKS_PER_SECOND = 100;

let api;

/** Of all programs that this one has started and that have ended. */
async function childrenSeconds() {
  const stat = await readFile("/proc/self/stat", "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(13, 15)
    .map(Number);
  return (user + system) / TICKS_PER_SECOND;
}

const command = (name, args) => ({
  gives: [name],
  measure: async () => {
    const before = await childrenSeconds();
    const startedAt = performance.now();
    for (let time = 0; time < TIMES; time++) {
      const env = { PATH: process.env.PATH, HOME: process.env.HOME, VITRINA_API_URL: `http://127.0.0.1:${api.port}` };
      const [code] = await once(spawn(process.execPath, args, { env, stdio: "ignore" }), "exit");
      if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}.`);
    }
    const wall = (performance.now() - startedAt) / TIMES;
    const ms = (1000 * ((await childrenSeconds()) - before)) / TIMES;
    return { [name]: { ms, note: `${Math.round(wall)} ms until it has ended` } };
  },
});

export default {
  name: "command line",
  unit: "ms of processor time",
  async setUp(world) {
    api = await startApi(world);
  },
  async tearDown() {
    await api.stop();
  },
  steps: [
    command("node alone", ["-e", "0"]),
    command("vitrina --version", [COMMAND, "--version"]),
    command("vitrina status", [COMMAND, "status"]),
  ],
  ratios: [
    {
      name: "cli-version",
      title: "Processor time of `vitrina --version` ÷ of a bare `node`",
      ours: "vitrina --version",
      target: 1.3,
    },
    { name: "cli-status", title: "The same of `vitrina status`", ours: "vitrina status", target: 2 },
  ].map((ratio) => ({ ...ratio, reference: "node alone" })),
};
