import { expect, it } from "vitest";
import { endLeaseOf, faulted, type Path, printed } from "../support/chaos.ts";
import { change, createFollowedSource, differenceOf, followOnce, openFollowChaos } from "../support/chaos-follow.ts";
import { LONG } from "../support/long.ts";

/**
 * A runner is frozen in the middle of a round until another one has followed further changes, and then woken: neither a
 * row nor the position may go back to what it knew.
 */
const CASES: readonly { readonly path: Path; readonly point: string; readonly typical?: true }[] = [
  { path: "stream", point: "keys_found:1" },
  { path: "stream", point: "chunk_committed:1" },
  // After the last: only the position is left to be moved.
  { path: "stream", point: "chunk_committed:4", typical: true },
  { path: "elsewhere", point: "chunk_committed:1" },
];

it.for(CASES.filter(({ typical }) => LONG || typical))(
  "R4.7 a runner that wakes up at $point of a round, by $path, changes nothing",
  async ({ path, point }, context) => {
    const chaos = await openFollowChaos(path);
    context.onTestFinished(() => chaos.close());
    await createFollowedSource(chaos);
    const pipeline = await chaos.createMart("films");
    await followOnce(chaos, [pipeline]);
    await chaos.query(change("seen by both"));
    await chaos.query("UPDATE etl.etl_pipelines SET enabled = true");
    await chaos.store.requests.run(pipeline.id, "api");
    const zombie = chaos.runner(`${point}:stop`, { LEASE_SECONDS: "600" });
    await faulted(zombie, point, "stop");
    await chaos.query(change("seen by the second"));
    await endLeaseOf(chaos, zombie);
    chaos.runner();
    await chaos.atRest();
    expect(await differenceOf(chaos, pipeline)).toEqual([]);
    const { position } = await chaos.store.follow.get(pipeline.id);

    zombie.signal("SIGCONT");
    await printed(zombie, /run dropped/);
    expect(await differenceOf(chaos, pipeline)).toEqual([]);
    expect((await chaos.store.follow.get(pipeline.id)).position).toEqual(position);
  },
);
