import type { CodedProblem } from "../../domain/error-catalogue.ts";
import type { RegisteredTask } from "../../domain/runner.ts";
import type { InspectedTaskPlan } from "../../domain/task-plan.ts";

/** `registered`: by the living runners; `undefined` when none lives, for then nothing can be told. */
export function taskProblems(
  { transforms }: InspectedTaskPlan,
  registered: readonly Pick<RegisteredTask, "name" | "language">[] | undefined,
): readonly CodedProblem[] {
  if (registered === undefined) return [];
  return transforms
    .filter(({ name, language }) => !registered.some((task) => task.name === name && task.language === language))
    .map(({ name, language, pointer }) => ({
      code: "TASK_UNKNOWN",
      pointer,
      message: `No runner has a ${language} task "${name}".`,
    }));
}
