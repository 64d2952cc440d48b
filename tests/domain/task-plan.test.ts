import { describe, expect, it } from "vitest";
import { type Problem, VitrinaError } from "../../src/domain/error-catalogue.ts";
import type { TargetReader } from "../../src/domain/target.ts";
import {
  type PlannedTask,
  parseTaskPlan,
  TASK_TYPES,
  type TaskPlan,
  type TaskPlanConfig,
  type TaskType,
} from "../../src/domain/task-plan.ts";
import { targetsWithin } from "../support/targets.ts";

const allowList = targetsWithin({ schemas: ["analytics"], indexes: ["film_dim"] });
const FILM_DIM = { kind: "postgres", schema: "analytics", table: "film_dim" } as const;

const task = (order_index: number, task_type: TaskType | "", body: string, target_table?: string): PlannedTask => ({
  order_index,
  task_type,
  body,
  ...(target_table === undefined ? {} : { target_table }),
});
const reader = task(1, "SQL", "SELECT 1");

const plan = (tasks: readonly PlannedTask[], target_table = "analytics.film_dim"): TaskPlan =>
  parseTaskPlan({ source_query: "", target_table, tasks }, allowList);

function problemsOf(config: TaskPlanConfig): readonly Problem[] {
  try {
    parseTaskPlan(config, allowList);
  } catch (error) {
    expect(error).toBeInstanceOf(VitrinaError);
    expect(["TASK_PLAN_INVALID", "TARGET_NOT_ALLOWED", "SOURCE_QUERY_MISSING"]).toContain((error as VitrinaError).code);
    const { message, problems } = error as VitrinaError;
    for (const problem of problems) expect(message).toContain(problem.message);
    return problems;
  }
  return [];
}

const brokenAt = (tasks: readonly PlannedTask[], target_table = "analytics.film_dim"): string[] =>
  problemsOf({ source_query: "SELECT 1", target_table, tasks }).map(({ pointer }) => pointer);

describe("a pipeline without tasks", () => {
  it("R2.3 becomes a plan of one step", () => {
    const expected: TaskPlan = { readerQuery: "SELECT 1", transforms: [], target: FILM_DIM };
    const config: TaskPlanConfig = { source_query: "SELECT 1", target_table: "analytics.film_dim" };
    expect(parseTaskPlan(config, allowList)).toEqual(expected);
    expect(parseTaskPlan({ ...config, tasks: [] }, allowList)).toEqual(expected);
    expect(plan([reader])).toEqual(expected);
  });

  it.each([undefined, null, "", " \n"])("R2.3 needs a source_query, not %j", (source_query) => {
    const problems = problemsOf({ source_query, target_table: "analytics.film_dim" });
    expect(problems).toEqual([
      { pointer: "/source_query", message: "The pipeline has neither a source_query nor tasks." },
    ]);
  });

  it("R2.3 reports a bad target together with a missing query", () => {
    const pointers = problemsOf({ target_table: "etl.runs" }).map(({ pointer }) => pointer);
    expect(pointers).toEqual(["/source_query", "/target_table"]);
  });
});

describe("a pipeline with tasks", () => {
  it("knows the three types of the specification", () => {
    expect(TASK_TYPES).toEqual(["SQL", "TYPESCRIPT", "PYTHON"]);
  });

  it("R2.3 ignores the source_query", () => {
    const config = { source_query: "DROP TABLE x", target_table: "analytics.film_dim", tasks: [reader] };
    expect(parseTaskPlan(config, allowList).readerQuery).toBe("SELECT 1");
  });

  it("R2.3 reads the tasks in the order of order_index, with the target of the last", () => {
    const tasks = [
      task(3, "PYTHON", "enrich", "es:film_dim"),
      task(1, "SQL", "SELECT 1"),
      task(2, "TYPESCRIPT", 'normalise_title {"column": "title"}'),
    ];
    expect(plan(tasks, "not even a target")).toEqual({
      readerQuery: "SELECT 1",
      transforms: [
        { language: "TYPESCRIPT", name: "normalise_title", params: { column: "title" } },
        { language: "PYTHON", name: "enrich", params: {} },
      ],
      target: { kind: "elasticsearch", index: "film_dim" },
    });
  });

  it("R2.3 lets a single SQL task override the target, since it is the last", () => {
    expect(plan([task(1, "SQL", "SELECT 1", "es:film_dim")]).target).toEqual({
      kind: "elasticsearch",
      index: "film_dim",
    });
  });

  it("treats a target_table of null like none", () => {
    expect(plan([{ ...reader, source_table: null, target_table: null }]).target).toEqual(FILM_DIM);
  });
});

describe("the contract of a plan", () => {
  it.each([
    ["0", [0]],
    ["2", [2]],
    ["-1", [-1]],
    ["1.5", [1.5]],
    ["NaN", [Number.NaN]],
  ])("R2.3 order_index starts at 1, not at %s", (_, [order_index = 0]) => {
    expect(brokenAt([{ ...reader, order_index }])).toEqual(["/tasks/0/order_index"]);
  });

  it("R2.3 order_index has no gaps", () => {
    expect(brokenAt([reader, task(3, "PYTHON", "enrich")])).toEqual(["/tasks/1/order_index"]);
  });

  it("R2.3 order_index is unique", () => {
    expect(brokenAt([reader, task(2, "PYTHON", "enrich"), task(2, "PYTHON", "clean")])).toEqual([
      "/tasks/2/order_index",
    ]);
  });

  it.each(["", "  "])("R2.3 no task_type is empty: %j", (empty) => {
    const tasks = [
      { ...reader, task_type: empty },
      { ...task(2, "PYTHON", "enrich"), task_type: empty },
    ];
    expect(brokenAt(tasks)).toEqual(["/tasks/0/task_type", "/tasks/1/task_type"]);
  });

  it.each(["", " \t\n"])("R2.3 no body is empty: %j", (empty) => {
    expect(brokenAt([task(1, "SQL", empty), task(2, "PYTHON", empty)])).toEqual(["/tasks/0/body", "/tasks/1/body"]);
  });

  it.each(["PYTHON", "TYPESCRIPT", "sql", "JAVA"])("R2.3 the first task is not %s", (task_type) => {
    expect(brokenAt([{ ...reader, task_type }])).toEqual(["/tasks/0/task_type"]);
  });

  it.each(["SQL", "python", "JAVA", "constructor"])("R2.3 a following task is not %s", (task_type) => {
    expect(brokenAt([reader, { ...task(2, "PYTHON", "enrich"), task_type }])).toEqual(["/tasks/1/task_type"]);
  });

  it("R2.3 only the last task may override the target, even with the same one", () => {
    const early = task(1, "SQL", "SELECT 1", "analytics.film_dim");
    expect(brokenAt([early, task(2, "PYTHON", "enrich")])).toEqual(["/tasks/0/target_table"]);
  });

  it.each(["etl.etl_runs", "film_dim", "es:secrets", ""])("R2.3 R8.1 the final target is not %j", (target) => {
    expect(brokenAt([reader], target)).toEqual(["/target_table"]);
    expect(brokenAt([reader, task(2, "PYTHON", "enrich", target)])).toEqual(["/tasks/1/target_table"]);
  });

  it("R2.3 reports everything at once, at the places where it was written", () => {
    const tasks = [
      task(2, "SQL", "SELECT 1", "analytics.x"),
      task(1, "PYTHON", ""),
      task(2, "PYTHON", "os.system", "etl.x"),
    ];
    expect(brokenAt(tasks).sort()).toEqual([
      "/tasks/0/target_table",
      "/tasks/0/task_type",
      "/tasks/1/body",
      "/tasks/1/task_type",
      "/tasks/2/body",
      "/tasks/2/order_index",
      "/tasks/2/target_table",
    ]);
  });

  it("lets an unexpected failure through instead of blaming the plan", () => {
    const failing: TargetReader = {
      require() {
        throw new TypeError("a defect");
      },
    };
    expect(() => parseTaskPlan({ target_table: "analytics.x", tasks: [reader] }, failing)).toThrow(TypeError);
  });
});

describe("the body of a code task", () => {
  const paramsOf = (body: string) => plan([reader, task(2, "TYPESCRIPT", body)]).transforms[0];

  it.each([
    ["clean", "clean", {}],
    ["  clean \n", "clean", {}],
    ["clean_2\n{\n}", "clean_2", {}],
    ['clean ["a", 1, null]', "clean", ["a", 1, null]],
    ["clean null", "clean", null],
    [`${"a".repeat(63)} {}`, "a".repeat(63), {}],
  ])("R2.4 names a registered task: %j", (body, name, params) => {
    expect(paramsOf(body)).toEqual({ language: "TYPESCRIPT", name, params });
  });

  it.each([
    "../clean",
    "/etc/passwd",
    "tasks.clean",
    "__import__('os')",
    "_clean",
    "Clean",
    "2clean",
    "clean()",
    'clean{"a":1}',
    "clean;drop",
    "чистка",
    "a".repeat(64),
  ])("R2.4 is never code or a path: %j", (body) => {
    const problems = problemsOf({ target_table: "analytics.film_dim", tasks: [reader, task(2, "PYTHON", body)] });
    expect(problems).toHaveLength(1);
    expect(problems[0]?.pointer).toBe("/tasks/1/body");
  });

  it("quotes only the beginning of a long body", () => {
    const problems = problemsOf({
      target_table: "analytics.film_dim",
      tasks: [reader, task(2, "PYTHON", "X".repeat(9999))],
    });
    expect(problems[0]?.message.length).toBeLessThan(300);
  });

  it.each(["clean {", "clean {'a': 1}", "clean import os", "clean {} {}", "clean undefined"])(
    "R2.4 has parameters in JSON: %j",
    (body) => {
      const problems = problemsOf({ target_table: "analytics.film_dim", tasks: [reader, task(2, "PYTHON", body)] });
      expect(problems).toEqual([{ pointer: "/tasks/1/body", message: "The parameters of task 2 are not valid JSON." }]);
    },
  );
});

describe("the code of a refusal", () => {
  const codeOf = (config: Partial<TaskPlanConfig>): string => {
    try {
      parseTaskPlan({ source_query: "SELECT 1", target_table: "analytics.film_dim", ...config }, allowList);
    } catch (error) {
      return (error as VitrinaError).code;
    }
    return "none";
  };

  it("is that of what is wrong: tasks are blamed only where there are some", () => {
    expect(codeOf({ target_table: "etl.etl_runs" })).toBe("TARGET_NOT_ALLOWED");
    expect(codeOf({ source_query: " " })).toBe("SOURCE_QUERY_MISSING");
    expect(codeOf({ target_table: "etl.etl_runs", tasks: [task(1, "SQL", "")] })).toBe("TASK_PLAN_INVALID");
  });
});

describe("R2.1 R2.2 type and source_table", () => {
  const copy = task(2, "TYPESCRIPT", "copy");

  it("a type names the language of a task that is there", () => {
    const typed = (type: string, tasks: readonly PlannedTask[]) =>
      problemsOf({ type, target_table: "analytics.film_dim", tasks }).map(({ pointer }) => pointer);
    expect(typed("TYPESCRIPT", [reader, copy])).toEqual([]);
    expect(typed("SQL", [reader, copy])).toEqual([]);
    expect(typed("PYTHON", [reader, copy])).toEqual(["/type"]);
    expect(typed("PYTHON", [reader])).toEqual(["/type"]);
  });

  it("a source_table is refused: the query says what is read", () => {
    const tasks = [{ ...reader, source_table: "content.film_work" }];
    expect(problemsOf({ target_table: "analytics.film_dim", tasks }).map(({ pointer }) => pointer)).toEqual([
      "/tasks/0/source_table",
    ]);
  });
});
