import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type PlannedTask, parseTaskPlan, type TaskPlanConfig } from "../../src/domain/task-plan.ts";
import { targetsWithin } from "../support/targets.ts";

const allowList = targetsWithin({ schemas: ["analytics"], indexes: ["film-*"] });

const allowedTarget = fc.constantFrom("analytics.film_dim", 'analytics."Film Dim"', "es:film-dim");
const taskName = fc.stringMatching(/^[a-z][a-z0-9_]{0,62}$/);
const codeBody = fc
  .tuple(taskName, fc.option(fc.json()))
  .map(([name, json]) => (json === null ? name : `${name} ${json}`));
const codeTask = fc.record({ task_type: fc.constantFrom("TYPESCRIPT", "PYTHON"), body: codeBody });

/** A valid plan of one to six tasks, in order. */
const validConfig: fc.Arbitrary<TaskPlanConfig & { tasks: PlannedTask[] }> = fc
  .record({
    target_table: allowedTarget,
    query: fc.string({ minLength: 1 }).filter((text) => text.trim() !== ""),
    code: fc.array(codeTask, { maxLength: 5 }),
    override: fc.option(allowedTarget),
  })
  .map(({ target_table, query, code, override }) => {
    const bodies = [{ task_type: "SQL", body: query }, ...code];
    const tasks = bodies.map((task, position) => ({
      ...task,
      order_index: position + 1,
      target_table: position === code.length ? override : null,
    }));
    return { target_table, tasks };
  });

type Change = Partial<PlannedTask>;
interface Mutation {
  readonly rule: string;
  /** The change that breaks the rule for the task at a position, or `undefined` where the rule does not apply. */
  change(task: PlannedTask, position: number, count: number): Change | undefined;
}

const following = (change: Change) => (_: PlannedTask, position: number) => (position > 0 ? change : undefined);
const MUTATIONS: readonly Mutation[] = [
  { rule: "order_index starts at 1", change: () => ({ order_index: 0 }) },
  { rule: "order_index is dense", change: (_task, _position, count) => ({ order_index: count + 1 }) },
  { rule: "order_index is whole", change: (task) => ({ order_index: task.order_index + 0.5 }) },
  {
    rule: "order_index is unique",
    change: (_, position) => (position > 0 ? { order_index: position } : undefined),
  },
  { rule: "task_type is not empty", change: () => ({ task_type: "" }) },
  { rule: "task_type is known", change: () => ({ task_type: "COBOL" }) },
  { rule: "body is not empty", change: () => ({ body: " " }) },
  { rule: "the first task is SQL", change: (_, position) => (position === 0 ? { task_type: "PYTHON" } : undefined) },
  { rule: "the following tasks are code", change: following({ task_type: "SQL" }) },
  { rule: "a code task is a name", change: following({ body: "../evil.py" }) },
  { rule: "parameters are JSON", change: following({ body: "clean {" }) },
  {
    rule: "only the last task has a target",
    change: (_, position, count) => (position < count - 1 ? { target_table: "analytics.x" } : undefined),
  },
  {
    rule: "the target is allowed",
    change: (_, position, count) => (position === count - 1 ? { target_table: "etl.etl_runs" } : undefined),
  },
];

describe("task plans", () => {
  it("R2.3 the order in which the tasks are listed does not matter", () => {
    const shuffled = validConfig.chain((config) =>
      fc.tuple(fc.constant(config), fc.shuffledSubarray(config.tasks, { minLength: config.tasks.length })),
    );
    fc.assert(
      fc.property(shuffled, ([config, tasks]) => {
        expect(parseTaskPlan({ ...config, tasks }, allowList)).toEqual(parseTaskPlan(config, allowList));
      }),
    );
  });

  it("R2.3 a plan has the reader's query and one transform per following task", () => {
    fc.assert(
      fc.property(validConfig, (config) => {
        const plan = parseTaskPlan(config, allowList);
        expect(plan.readerQuery).toBe(config.tasks[0]?.body);
        expect(plan.transforms.map(({ language }) => language)).toEqual(
          config.tasks.slice(1).map((task) => task.task_type),
        );
      }),
    );
  });

  it.each(MUTATIONS)("R2.3 breaking one rule breaks the plan: $rule", ({ change }) => {
    fc.assert(
      fc.property(validConfig, fc.nat(), (config, choice) => {
        const position = choice % config.tasks.length;
        const task = config.tasks[position];
        const broken = task && change(task, position, config.tasks.length);
        fc.pre(task !== undefined && broken !== undefined);
        const tasks = config.tasks.with(position, { ...task, ...broken });
        expect(() => parseTaskPlan({ ...config, tasks }, allowList)).toThrow(
          expect.objectContaining({
            code: expect.stringMatching(/^(TASK_PLAN_INVALID|TARGET_NOT_ALLOWED)$/),
            problems: expect.arrayContaining([
              expect.objectContaining({ pointer: `/tasks/${position}/${Object.keys(broken).join()}` }),
            ]),
          }),
        );
      }),
    );
  });
});
