import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pipeline } from "../../src/domain/pipeline.ts";
import { CINEMA, FILM_MART } from "../support/followed-marts.ts";
import { type Bench, openBench } from "../support/pipelines.ts";
import { until } from "../support/until.ts";

/** What a reconcile says about a mart that follows: a difference is one only when no change is on its way. */

let bench: Bench;
let films: Pipeline;
beforeAll(async () => {
  bench = await openBench();
  await bench.query(CINEMA);
  await bench.startRunner();
  films = await bench.create({ ...FILM_MART, follow: { check_every_seconds: 3600 } });
  await bench.run(films);
});
afterAll(() => bench.close());

async function reconciled() {
  const { id } = await bench.store.reconciles.request(films.id, "test");
  return until("the reconcile has ended", async () => {
    const found = await bench.store.reconciles.get(films.id, id);
    return ["WAITING", "RUNNING"].includes(found.status) ? undefined : found;
  });
}

it("finds a mart that has followed equal to its query", async () => {
  expect(await reconciled()).toMatchObject({ status: "MATCH", report: { source: { rows: 200 } } });
});

it("draws no conclusion while a change waits to be followed, and none is left afterwards", async () => {
  await bench.query("UPDATE content.film SET title = 'pending' WHERE id = 1");
  const notes = [expect.stringMatching(/^The source has changes that the next run follows/)];
  expect(await reconciled()).toMatchObject({ status: "INCONCLUSIVE", report: { different: { count: 1 }, notes } });
  await bench.run(films);
  expect(await reconciled()).toMatchObject({ status: "MATCH" });
});

it("finds what somebody else did to the mart", async () => {
  await bench.query(`UPDATE ${films.target_table} SET title = 'tampered' WHERE film_id = 2`);
  expect(await reconciled()).toMatchObject({
    status: "DIFFERENT",
    report: { different: { count: 1, keys: [{ key: { film_id: "2" }, columns: ["title"] }] } },
  });
});

it("finds the changes that nobody follows any more, and says why", async () => {
  await bench.query("ALTER TABLE content.film ENABLE ROW LEVEL SECURITY");
  await bench.query("UPDATE content.film SET title = 'unseen' WHERE id = 3");
  expect(await bench.run(films)).toMatchObject({ status: "FAILED" });
  await bench.query("CREATE POLICY everything ON content.film USING (true)");
  const because = async (status: string) =>
    expect(await reconciled()).toMatchObject({
      status: "DIFFERENT",
      report: {
        different: { keys: expect.arrayContaining([{ key: { film_id: "3" }, columns: ["title"] }]) },
        notes: [expect.stringMatching(`no run starts by itself: the pipeline is ${status}\\.`)],
      },
    });
  await because("FAILED");
  await bench.store.pipelines.update(films.id, { enabled: false }, { author: "test" });
  await because("disabled");
});
