// A search index: what reading, encoding, checkpoints and checks cost beside what the server itself needs to index.
import { documentEncoder } from "../../dist/connectors/elasticsearch/documents.js";
import { indexDefinition } from "../../dist/connectors/elasticsearch/index-definition.js";
import { startSearchServer } from "../../scripts/search-servers.mjs";
import { createPipeline, runPipeline, startRunner } from "../support/runner.mjs";
import { COLUMNS, QUERY } from "../support/source-data.mjs";
import { requireRun } from "./loads.mjs";

const BATCH_SIZE = 5000;
const TYPES = ["bigint", "uuid", "text", "numeric(10,2)", "integer", "boolean", "text[]", "timestamp with time zone"];
const columns = COLUMNS.map((name, index) => ({ name, type: TYPES[index] }));

let server;
let bodies;
let rounds = 0;

async function ask(method, path, body, type = "application/json") {
  const response = await fetch(`${server.url}${path}`, { method, body, headers: { "content-type": type } });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** The same requests that Vitrina sends, prepared before the clock starts. */
async function prepareBodies({ admin }) {
  const encode = documentEncoder(columns, ["id"], undefined);
  const texts = COLUMNS.map((name) => `${name}::text`).join(", ");
  const made = [];
  for (let after = 0; ; ) {
    const { rows } = await admin.query({
      text: `SELECT ${texts} FROM (${QUERY}) q WHERE q.id > $1 ORDER BY q.id LIMIT ${BATCH_SIZE}`,
      values: [after],
      rowMode: "array",
    });
    if (rows.length === 0) return made;
    made.push(
      Buffer.from(
        encode(rows, 1n)
          .operations.map(({ lines }) => lines)
          .join(""),
      ),
    );
    after = Number(rows.at(-1)[0]);
  }
}

async function byBareLoop(world) {
  rounds += 1;
  const index = `by_hand_${rounds}`;
  const { properties } = indexDefinition(columns, {}, "opensearch");
  const startedAt = performance.now();
  await ask("PUT", `/${index}`, JSON.stringify({ mappings: { properties }, settings: { refresh_interval: "-1" } }));
  for (const body of bodies) {
    const { errors } = await ask("POST", `/${index}/_bulk?filter_path=errors`, body, "application/x-ndjson");
    if (errors) throw new Error("a document was refused");
  }
  await ask("POST", `/${index}/_refresh`);
  const ms = performance.now() - startedAt;
  const { count } = await ask("GET", `/${index}/_count`);
  if (count !== world.rows) throw new Error(`${count} documents instead of ${world.rows}`);
  await ask("DELETE", `/${index}`);
  return { "bare bulk loop": { ms, note: `${Math.round((1000 * world.rows) / ms).toLocaleString("en")} documents/s` } };
}

async function byRunner(world) {
  rounds += 1;
  const index = `bench_${rounds}`;
  const config = { target_table: `es:${index}`, source_query: QUERY, batch_size: BATCH_SIZE };
  const pipeline = await createPipeline(world, config);
  const run = await runPipeline(world, pipeline);
  requireRun(run, { data_path: "rows", strategy: "new index", rows_written: world.rows });
  await world.store.pipelines.delete(pipeline.id);
  for (const name of Object.keys(await ask("GET", `/${index}__*`))) await ask("DELETE", `/${name}`);
  const speed = `${Math.round((1000 * world.rows) / run.ms).toLocaleString("en")} documents/s`;
  return { "search index": { ms: run.ms, note: `${speed}; read ${run.read_ms} ms, write ${run.write_ms} ms` } };
}

export default {
  name: "search index",
  // Not every machine has Java, or a way to fetch the server.
  optional: true,
  async setUp(world) {
    server = await startSearchServer("opensearch3");
    world.onClose(() => server.stop());
    bodies = await prepareBodies(world);
    await world.runner.stop();
    const environment = { ELASTICSEARCH_URL: server.url, TARGET_INDEXES: "bench_*" };
    world.runner = await startRunner({ ...world, runnerEnvironment: { ...world.runnerEnvironment, ...environment } });
  },
  async tearDown(world) {
    bodies = undefined;
    await world.runner.stop();
    await server.stop();
    world.runner = await startRunner(world);
  },
  steps: [
    { gives: ["bare bulk loop"], measure: byBareLoop },
    { gives: ["search index"], measure: byRunner },
  ],
  ratios: [
    {
      name: "search",
      title: "Full load of a search index, batches of 5,000 ÷ a bare loop that sends the same prepared bulk requests",
      ours: "search index",
      reference: "bare bulk loop",
      target: 1.3,
    },
  ],
};
