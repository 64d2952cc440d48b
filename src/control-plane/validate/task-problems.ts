import type { CodedProblem } from "../../domain/error-catalogue.ts";
import type { InspectedTaskPlan } from "../../domain/task-plan.ts";

/** A code task that a living runner has registered. */
export interface KnownTask {
  readonly name: string;
  readonly language: string;
}

export function taskProblems(
  { transforms }: InspectedTaskPlan,
  known: readonly KnownTask[] | undefined,
): readonly CodedProblem[] {
  if (known === undefined) return [];
  return transforms
    .filter(({ name, language }) => !known.some((task) => task.name === name && task.language === language))
    .map(({ name, language, pointer }) => ({
      code: "TASK_UNKNOWN",
      pointer,
      message: `No runner has a ${language} task "${name}".`,
    }));
}
