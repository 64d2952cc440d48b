import { nextRunAt, parseSchedule } from "../../domain/schedule.ts";
import type { PipelineVitals } from "../../meta-store/ports/monitoring.ts";

/**
 * By when the schedule of a pipeline calls for a load, in seconds since 1970. Cron in a time zone is slow to compute, and
 * the answer changes only with a success or a change of the pipeline, so it is remembered from scrape to scrape.
 */
export class DueTimes {
  #known = new Map<string, number | undefined>();

  /** In the order of the pipelines. Forgets what was not asked for again. */
  of(pipelines: readonly PipelineVitals[]): (number | undefined)[] {
    const asked = new Map<string, number | undefined>();
    const times = pipelines.map(({ schedule, lastSuccessSeconds, changedAtSeconds }) => {
      if (schedule === null) return undefined;
      // Whoever changes a pipeline does not make it late.
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
    // Written by hand, past the API; the runner says so in schedule_error.
    return undefined;
  }
}
