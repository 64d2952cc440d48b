import { isDeepStrictEqual } from "node:util";
import type { Follower, FollowRound } from "../../connectors/follower.ts";
import { configFingerprint } from "../../domain/checkpoint.ts";
import { plural } from "../../domain/counted.ts";
import { VitrinaError } from "../../domain/error-catalogue.ts";
import type { FollowPosition } from "../../domain/follow.ts";
import { relationName } from "../../domain/relation-name.ts";
import { faultPoint } from "../../observability/fault-points.ts";
import { openLoad } from "../load.ts";
import type { Load, LoadScope, ReadingRun } from "../run-context.ts";
import type { FollowedSource } from "./kept-sources.ts";

/**
 * What a run in follow mode works with: its source and tasks for the whole run, and its target opened for single keys or
 * for everything, one at a time.
 */
export class FollowSession {
  readonly run: ReadingRun;
  readonly fingerprint: string;
  readonly #notes: string[] = [];
  readonly #counts = { changes: 0, keys: 0, rounds: 0 };
  readonly #followed: FollowedSource;
  #comparison: Load | undefined;
  #follower: Follower | undefined;
  #target: Load | undefined;
  #position: FollowPosition | undefined;

  constructor(run: ReadingRun, followed: FollowedSource) {
    this.run = run;
    this.#followed = followed;
    this.fingerprint = configFingerprint(run.pipeline);
  }

  /** `mayContinue`: an unfinished load of everything is continued. */
  async target(scope: LoadScope, mayContinue = false): Promise<Load> {
    if (this.#target?.scope === scope) return this.#target;
    await this.releaseTarget();
    this.#target = await openLoad(this.run, scope, mayContinue);
    return this.#target;
  }

  isOpenFor(scope: LoadScope): boolean {
    return this.#target?.scope === scope;
  }

  async releaseTarget(): Promise<void> {
    const target = this.#target;
    this.#target = undefined;
    await target?.close();
  }

  /** At the end of a run that went well: the next one may go on with what it has. */
  async restTarget(): Promise<void> {
    const rest = this.#target?.writer.rest;
    if (rest === undefined) return;
    this.#target = undefined;
    await rest();
  }

  /** Where Vitrina owns the source, what records the changes is installed when it is found to be missing. */
  async openRound(): Promise<FollowRound> {
    const { parts, pipeline } = this.run;
    const follower = await this.#openFollower();
    const round = await follower.openRound().catch(async (error: unknown) => {
      if (!(error instanceof VitrinaError && error.code === "CHANGES_NOT_RECORDED")) throw error;
      if (await parts.installChanges?.(pipeline, follower.plan)) return follower.openRound();
      const hint = `Have the owner of the source run what vitrina follow script ${pipeline.source_connection} prints; then run the pipeline again.`;
      throw new VitrinaError("CHANGES_NOT_RECORDED", error.message, { hint, cause: error });
    });
    await faultPoint("round_opened");
    // Something may have been altered since the last round, so that the plan is another one.
    const { refusals } = follower.plan;
    if (refusals.length === 0) return round;
    await round.close();
    throw refusedBy(refusals);
  }

  /** Whose changes are followed, as schema.table. */
  get tables(): string[] {
    const tables = this.#follower?.plan.tables ?? [];
    return tables.filter(({ change }) => change.kind !== "ignore").map(relationName);
  }

  /** The target has every change up to the position. */
  async moveTo(position: FollowPosition, mark: Load["progress"]["targetMark"], comparedEverything: boolean) {
    const { fingerprint, tables } = this;
    await this.run.commit.moveFollowPosition({ position, fingerprint, tables, mark, comparedEverything });
    this.#position = position;
    await faultPoint("position_moved");
  }

  /** Whether the source has changed since the position was moved. */
  async hasNews(): Promise<boolean> {
    if (this.#position === undefined || this.#follower === undefined) return true;
    return this.#follower.hasChangedSince(this.#position);
  }

  /** For the notes of the run. */
  noteComparison(load: Load): void {
    this.#comparison = load;
    this.#notes.push(...load.notes);
  }

  /** Shown with the run. If it compared everything, that says how its rows travelled. */
  async noteRound(load: Load, { changes, keys }: { changes: number; keys: number }): Promise<void> {
    const followed = this.#counts;
    followed.changes += changes;
    followed.keys += keys;
    followed.rounds += changes === 0 ? 0 : 1;
    const { dataPath, resumed, writer, estimatedRows } = this.#comparison ?? load;
    const [ofChanges, ofKeys] = [plural(followed.changes, "change"), plural(followed.keys, "key")];
    const note = `${ofChanges} of the source concerned ${ofKeys}, in ${plural(followed.rounds, "round")}.`;
    await this.run.commit.describeRun({
      dataPath,
      strategy: this.#comparison === undefined ? "follow" : writer.strategy,
      estimatedRows: estimatedRows ?? followed.keys,
      resumed,
      notes: [...this.#notes, ...(this.#comparison === undefined ? load.notes : []), note],
    });
    this.run.report.log.info({ changes, keys, data_path: load.dataPath }, "round followed");
  }

  /** Its key is the target's, so the target is opened before. */
  async #openFollower(): Promise<Follower> {
    if (this.#follower !== undefined) return this.#follower;
    const { columns, pipeline } = this.run;
    const key = this.#target?.writer.key ?? pipeline.target_key;
    const made = key.find((name) => !columns.some((column) => column.name === name));
    if (made !== undefined) {
      const why = `The column "${made}" of the key is made by a code task, so no change of the source leads to it.`;
      throw new VitrinaError("FOLLOW_REFUSED", why, { hint: "Make the key in the query, or use mode full." });
    }
    const follower = await this.#keptFollower(key);
    this.#follower = follower;
    const { refusals, warnings } = follower.plan;
    if (refusals.length > 0) throw refusedBy(refusals);
    for (const warning of warnings) this.run.report.log.warn({}, warning);
    return follower;
  }

  /** That of the run before, if it is still there and had the same key. */
  async #keptFollower(key: readonly string[]): Promise<Follower> {
    const { source, plan, columns, pipeline } = this.run;
    const { following } = this.#followed;
    if (following !== undefined && isDeepStrictEqual(following.key, key)) return following.follower;
    await following?.follower.close();
    const follower = await source.openFollower?.({
      query: plan.readerQuery,
      columns,
      key,
      tables: pipeline.follow.tables,
    });
    if (follower === undefined) {
      throw new VitrinaError("NOT_SUPPORTED", `A source of type ${pipeline.source_type} cannot be followed.`);
    }
    this.#followed.following = { follower, key };
    return follower;
  }
}

function refusedBy(refusals: Follower["plan"]["refusals"]): VitrinaError {
  const hint = [...new Set(refusals.map(({ wayOut }) => wayOut))].join(" ");
  return new VitrinaError("FOLLOW_REFUSED", refusals.map(({ message }) => message).join(" "), { hint });
}
