import { Gauge, type Registry } from "prom-client";
import { PIPELINE_STATUSES } from "../../domain/pipeline-status.ts";
import { nextRunAt, parseSchedule } from "../../domain/schedule.ts";
import { watermarkSeconds } from "../../domain/watermark.ts";
import type { Monitoring, PipelineVitals, Survey } from "../../meta-store/ports/monitoring.ts";
import type { Log } from "../../observability/log.ts";

/** Each has about ten series, in every scrape and in Prometheus. Beyond this limit only the first by name get any. */
const MOST_PIPELINES = 500;

export interface PipelineGauges {
  /** Called before each scrape; asks the meta-store once for everything. */
  refresh(): Promise<void>;
}

/** The state of pipelines and runners. All API processes report the same, so a rule takes the max over them. */
export function createPipelineGauges(registry: Registry, monitoring: Monitoring, log: Log): PipelineGauges {
  const all = createGauges(registry);
  const { metaStoreUp, ...surveyed } = all;
  const dueTimes = new DueTimes();
  return {
    async refresh() {
      try {
        const survey = await monitoring.survey(MOST_PIPELINES);
        for (const gauge of Object.values(surveyed)) gauge.reset();
        show(all, survey, dueTimes.of(survey.pipelines));
      } catch (error) {
        // The rest of the scrape is still valid, and old values would hide that these are unknown.
        log.warn({ err: error }, "the metrics of the pipelines could not be read");
        for (const gauge of Object.values(surveyed)) forget(gauge);
        metaStoreUp.set(0);
      }
    },
  };
}

type Gauges = ReturnType<typeof createGauges>;

function createGauges(registry: Registry) {
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> =>
    new Gauge({ name: `vitrina_${name}`, help, labelNames, registers: [registry] });
  return {
    metaStoreUp: gauge("meta_store_up", "1 when the meta-store answered for this scrape, 0 when not."),
    byStatus: gauge("pipelines", "Pipelines by status, disabled ones included.", "status"),
    waiting: gauge("pipelines_waiting", "Enabled pipelines that wait for a runner."),
    heldUp: gauge("pipelines_held_up", "Enabled pipelines that wait until trouble passes, such as a database away."),
    oldestWaiting: gauge(
      "oldest_waiting_seconds",
      "How long the pipeline that waits longest has been waiting for a runner; 0 when none waits.",
    ),
    runners: gauge("runners", "Runners by state; lost: fell silent within the last hour without signing off.", "state"),
    leftOut: gauge(
      "pipelines_without_series",
      `Enabled pipelines that have no series of their own, because only the first ${MOST_PIPELINES} by name have.`,
    ),
    status: gauge("pipeline_status", "1 for the status that the pipeline has, 0 for the others.", "pipeline", "status"),
    lastSuccess: gauge(
      "pipeline_last_success_timestamp_seconds",
      "When the last successful load of the pipeline ended; none before the first.",
      "pipeline",
    ),
    due: gauge(
      "pipeline_due_timestamp_seconds",
      "By when, after its last success or change, the schedule of the pipeline calls for a load; none without a schedule.",
      "pipeline",
    ),
    watermark: gauge(
      "pipeline_watermark_timestamp_seconds",
      "Where the next incremental load of the pipeline starts, if that is a time; times without a zone are taken as UTC.",
      "pipeline",
    ),
    rejected: gauge(
      "pipeline_last_run_rejected_rows",
      "Rows that the target refused in the last run of the pipeline.",
      "pipeline",
    ),
    lastRound: gauge(
      "follow_last_round_timestamp_seconds",
      "When the mart of a pipeline that follows was last brought up to date; none before the first time.",
      "pipeline",
    ),
    lastCompare: gauge(
      "follow_last_compare_timestamp_seconds",
      "When the whole mart of a pipeline that follows was last compared with its query; none before the first time.",
      "pipeline",
    ),
    repaired: gauge(
      "follow_repaired_rows",
      "Rows that sweeps of the pipeline had to repair although every change had been followed, over all sweeps.",
      "pipeline",
    ),
  };
}

function show(gauges: Gauges, survey: Survey, dueTimes: readonly (number | undefined)[]): void {
  gauges.metaStoreUp.set(1);
  for (const [status, count] of survey.byStatus) gauges.byStatus.set({ status }, count);
  gauges.waiting.set(survey.waiting);
  gauges.heldUp.set(survey.heldUp);
  gauges.oldestWaiting.set(survey.oldestWaitingSeconds);
  gauges.runners.set({ state: "alive" }, survey.runnersAlive);
  gauges.runners.set({ state: "lost" }, survey.runnersLost);
  gauges.leftOut.set(survey.leftOut);
  for (const [index, vitals] of survey.pipelines.entries()) showPipeline(gauges, vitals, dueTimes[index]);
}

function showPipeline(gauges: Gauges, vitals: PipelineVitals, due: number | undefined): void {
  const { name: pipeline, lastSuccessSeconds, lastRunRejected } = vitals;
  for (const status of PIPELINE_STATUSES) gauges.status.set({ pipeline, status }, status === vitals.status ? 1 : 0);
  if (lastSuccessSeconds !== null) gauges.lastSuccess.set({ pipeline }, lastSuccessSeconds);
  if (lastRunRejected !== null) gauges.rejected.set({ pipeline }, lastRunRejected);
  const { lastRoundSeconds = null, lastCompareSeconds = null, repaired } = vitals.follow ?? {};
  if (lastRoundSeconds !== null) gauges.lastRound.set({ pipeline }, lastRoundSeconds);
  if (lastCompareSeconds !== null) gauges.lastCompare.set({ pipeline }, lastCompareSeconds);
  if (repaired !== undefined) gauges.repaired.set({ pipeline }, repaired);
  if (due !== undefined) gauges.due.set({ pipeline }, due);
  const watermark = vitals.watermark === null ? undefined : watermarkSeconds(vitals.watermark);
  if (watermark !== undefined) gauges.watermark.set({ pipeline }, watermark);
}

/** A reset leaves a gauge without labels at 0, which would read as a measurement. */
function forget(gauge: Gauge): void {
  gauge.reset();
  gauge.remove({});
}

/**
 * By when the schedule of a pipeline calls for a load, in seconds since 1970. Cron in a time zone is slow to compute, and
 * the answer changes only with a success or a change of the pipeline, so it is remembered from scrape to scrape.
 */
class DueTimes {
  #known = new Map<string, number | undefined>();

  /** In the order of the pipelines. Drops entries of pipelines that were not asked for. */
  of(pipelines: readonly PipelineVitals[]): (number | undefined)[] {
    const asked = new Map<string, number | undefined>();
    const times = pipelines.map(({ schedule, lastSuccessSeconds, changedAtSeconds }) => {
      if (schedule === null) return undefined;
      // Changing a pipeline does not make it late.
      const since = Math.max(lastSuccessSeconds ?? 0, changedAtSeconds);
      const question = `${since} ${schedule}`;
      const time = this.#known.has(question) ? this.#known.get(question) : dueAfter(schedule, since);
      asked.set(question, time);
      return time;
    });
    this.#known = asked;
    return times;
  }
}

function dueAfter(schedule: string, sinceSeconds: number): number | undefined {
  try {
    return nextRunAt(parseSchedule(schedule), new Date(sinceSeconds * 1000)).getTime() / 1000;
  } catch {
    // Written by hand, bypassing the API; the runner reports it in schedule_error.
    return undefined;
  }
}
