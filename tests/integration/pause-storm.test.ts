import { afterAll, beforeAll, expect, it } from "vitest";
import { nextStatus, PIPELINE_EVENTS, type PipelineStatus } from "../../src/domain/pipeline-status.ts";
import type { Answer } from "../support/api-client.ts";
import { type ApiWithRunner, startApiWithRunner } from "../support/api-with-runner.ts";
import { type Random, seededRandom } from "../support/chaos-random.ts";
import { until } from "../support/until.ts";

const CALLS = 1000;
const CLIENTS = 8;
const ROWS = 300_000;
const BATCH = 200;

let api: ApiWithRunner;
let id: string;
beforeAll(async () => {
  api = await startApiWithRunner();
  await api.database.query(`
    CREATE TABLE content.film AS SELECT n AS id, 'film ' || n AS title FROM generate_series(1, ${ROWS}) n;
    ALTER TABLE content.film ADD PRIMARY KEY (id);
    CREATE TABLE public.history (
      n int GENERATED ALWAYS AS IDENTITY, before text, after text, enabled boolean, batch_size int, batch_no bigint);
    CREATE FUNCTION public.keep_history() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      BEGIN
        INSERT INTO public.history (before, after, enabled, batch_size, batch_no)
        VALUES (OLD.status, NEW.status, NEW.enabled, NEW.batch_size,
                (SELECT batch_no FROM etl.etl_state WHERE pipeline_id = NEW.id));
        RETURN NULL;
      END $$;
    CREATE TRIGGER keep_history AFTER UPDATE OF status, enabled, batch_size ON etl.etl_pipelines
      FOR EACH ROW EXECUTE FUNCTION public.keep_history()`);
  id = await api.create("film", { source_query: "SELECT id, title FROM content.film", batch_size: BATCH });
  await api.startRunner();
});
afterAll(() => api.stop());

type Call = { readonly name: string; send(): Promise<Answer> };

function randomCall(random: Random): Call {
  const kind = random.below(6);
  const size = BATCH + random.below(50);
  const patch = (body: object) => () => api.patch(`/pipelines/${id}`, body);
  switch (kind) {
    case 0:
    case 1:
      return { name: "run", send: () => api.post(`/pipelines/${id}/run`) };
    case 2:
    case 3:
      return { name: "pause", send: () => api.post(`/pipelines/${id}/pause`) };
    case 4:
      return { name: "batch_size", send: patch({ batch_size: size }) };
    default:
      return { name: "enabled", send: patch({ enabled: random.chance(0.7) }) };
  }
}

const isLegal = (from: PipelineStatus, to: PipelineStatus): boolean =>
  from === to || PIPELINE_EVENTS.some((event) => nextStatus(from, event) === to);

it("R4.9 a thousand calls of eight clients against a running pipeline make only legal changes", async () => {
  const counts = new Map<string, number>();
  let newest: Record<string, unknown> = { config_version: 0 };
  let left = CALLS;
  const client = async (number: number): Promise<void> => {
    const random = seededRandom(number);
    while (left > 0) {
      left -= 1;
      const { name, send } = randomCall(random);
      const { status, body, text } = await send();
      const isExpected =
        status === 200 || (status === 409 && ["STATUS_CONFLICT", "PIPELINE_DISABLED"].includes(body.code));
      expect(isExpected, `${name}: ${status} ${text}`).toBe(true);
      if (status === 200 && body.config_version > Number(newest["config_version"])) newest = body;
      const outcome = `${name} ${status}`;
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  // The storm was one: requests of every kind were accepted.
  for (const name of ["run", "pause", "batch_size", "enabled"]) expect(counts.get(`${name} 200`)).toBeGreaterThan(10);

  const history = await api.database.query("SELECT * FROM public.history ORDER BY n");
  const changes = history.filter(({ before, after }) => before !== after);
  // How many depends on how fast the machine is; each cycle has four.
  expect(changes.length).toBeGreaterThan(8);
  const illegal = changes.filter((row) => !isLegal(row["before"] as PipelineStatus, row["after"] as PipelineStatus));
  expect(illegal).toEqual([]);
  // Each change starts where the one before ended: none was lost or overwritten.
  const torn = changes.filter((row, index) => index > 0 && row["before"] !== changes[index - 1]?.["after"]);
  expect(torn).toEqual([]);

  // R4.3: between the request and the pause at most the batch under way, and one that had passed the question, commit.
  for (const [index, row] of changes.entries()) {
    const next = changes[index + 1];
    if (row["after"] !== "PAUSE_REQUESTED" || next?.["after"] !== "PAUSED") continue;
    expect(Number(next["batch_no"]) - Number(row["batch_no"])).toBeLessThanOrEqual(1);
  }

  // What was accepted last is what holds.
  const { config_version, batch_size, enabled } = newest;
  expect((await api.get(`/pipelines/${id}`)).body).toMatchObject({ config_version, batch_size, enabled });
  const last = await api.patch(`/pipelines/${id}`, { enabled: true, batch_size: 5000 });
  expect(last).toMatchObject({ status: 200, body: { enabled: true, batch_size: 5000 } });
  const [row] = await api.database.query("SELECT enabled, batch_size FROM public.history ORDER BY n DESC LIMIT 1");
  expect(row).toEqual({ enabled: true, batch_size: 5000 });
  await until("a run is accepted", async () => (await api.post(`/pipelines/${id}/run`)).status === 200);
  const { body } = await api.get(`/pipelines/${id}/status?wait=60s`);
  expect(body).toMatchObject({ status: "IDLE", over: true, last_run: { status: "SUCCESS" } });
  const [rows] = await api.database.query(
    `SELECT count(*)::int AS n, (SELECT count(*)::int FROM content.film EXCEPT SELECT count(*)::int FROM analytics.film) AS differ FROM analytics.film`,
  );
  expect(rows).toEqual({ n: ROWS, differ: null });
});
