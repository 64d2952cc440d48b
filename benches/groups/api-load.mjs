// The API with many callers at the same time, against one that does nothing but the same SQL.
import { Agent, request } from "node:http";
import { processorSeconds, startRunner } from "../support/runner.mjs";
import { startApi, startBareServer } from "../support/server.mjs";

const CONNECTIONS = 50;
const REQUESTS = 5000;
const PIPELINES = 100;

let api;
let bare;

/** Every connection sends its next request as soon as the one before is answered. */
async function load({ port, pid }, method, path) {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let left = REQUESTS;
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      await send({ agent, host: "127.0.0.1", port, method, path });
    }
  };
  const cpuBefore = await processorSeconds(pid);
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, caller));
  const ms = performance.now() - startedAt;
  const cpu = (1000 * ((await processorSeconds(pid)) - cpuBefore)) / REQUESTS;
  agent.destroy();
  return {
    ms: ms / REQUESTS,
    note: `${Math.round((1000 * REQUESTS) / ms).toLocaleString("en")} requests/s; ${cpu.toFixed(2)} ms of processor time each`,
  };
}

function send(options) {
  return new Promise((resolve, reject) => {
    request(options, (answer) => {
      answer.resume();
      answer.once("end", () =>
        answer.statusCode < 300
          ? resolve()
          : reject(new Error(`${options.path} was answered with ${answer.statusCode}.`)),
      );
    })
      .once("error", reject)
      .end();
  });
}

const step = (name, server, method, path) => ({
  gives: [name],
  measure: async () => ({ [name]: await load(server(), method, path) }),
});

export default {
  name: "API under load",
  unit: "ms per request",
  async setUp(world) {
    await world.runner.stop();
    await world.admin.query("DELETE FROM etl.etl_pipelines");
    await world.admin.query(
      `INSERT INTO etl.etl_pipelines (name, source_query, target_table)
       SELECT 'loaded_' || n, 'SELECT 1 AS id', 'analytics.loaded_' || n FROM generate_series(1, $1::int) n`,
      [PIPELINES],
    );
    [api, bare] = [await startApi(world), await startBareServer(world)];
  },
  async tearDown(world) {
    await Promise.all([api.stop(), bare.stop()]);
    await world.admin.query("DELETE FROM etl.etl_pipelines");
    world.runner = await startRunner(world);
  },
  steps: [
    step("list by the API", () => api, "GET", "/api/v1/pipelines"),
    step("list by a bare server", () => bare, "GET", "/pipelines"),
    step("run by the API", () => api, "POST", "/api/v1/pipelines/loaded_1/run"),
    step("run by a bare server", () => bare, "POST", "/pipelines/loaded_1/run"),
  ],
  ratios: [
    {
      name: "api-list",
      title: "GET /pipelines over 50 connections ÷ a bare server that does the same SQL",
      ours: "list by the API",
      reference: "list by a bare server",
      target: 2,
    },
    {
      name: "api-run",
      title: "POST /pipelines/{id}/run over 50 connections ÷ a bare server that does the same SQL",
      ours: "run by the API",
      reference: "run by a bare server",
      target: 2,
    },
  ],
};
