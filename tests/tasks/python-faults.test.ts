import { describe, expect, it } from "vitest";
import type { TaskHostConfig } from "../../src/tasks/open-task-host.ts";
import type { Transform } from "../../src/tasks/task.ts";
import { isAlive } from "../support/embedded-postgres-harness.ts";
import { until } from "../support/until.ts";
import { columnsOf, hasPython, loadHost, neverAborted, pythonModule, type TestHost } from "./task-folder.ts";

const MODULE = pythonModule({
  pid: "return [{'x': str(os.getpid())} for row in rows]",
  forever: "while True:\n    pass",
  forever_in_c: "import re\nre.match('(a+)+$', 'a' * 100 + 'b')",
  forever_with_child:
    "child = subprocess.Popen(['sleep', '1000'])\nprint('child', child.pid, flush=True)\nwhile True:\n    time.sleep(1)",
  leaves_a_child: "child = subprocess.Popen(['sleep', '1000'])\nreturn [{'x': str(child.pid)}]",
  sys_exit: "sys.exit(3)",
  os_exit: "print('so long', file=sys.stderr, flush=True)\nos._exit(0)",
  crash: "import ctypes\nctypes.string_at(0)",
  killed: "os.kill(os.getpid(), 9)",
  hog: "return [{'x': 'y' * (1 << 30)}]",
  hog_of_small_things: "held = []\nwhile True:\n    held.append({'x': len(held)})",
  noise: "print('noise'); sys.stdout.flush(); os.write(1, b'{}\\n'); os.system('echo more')\nreturn rows",
  reads_stdin: "return [{'x': sys.stdin.read()}]",
  garbage: "os.write(4, b'garbage\\n')\nreturn rows",
  wrong_reply: 'os.write(4, b\'{"type": "applied"}\\n\')\nreturn rows',
  forks: "child = os.fork()\nif child == 0:\n    return rows\nos.waitpid(child, 0)\nreturn [{'x': 'parent'}]",
  environment: "return [{'x': ' '.join(sorted(os.environ))}]",
  odd_message: "raise ValueError('half \\ud83d')",
  slow: "time.sleep(0.3)\nreturn rows",
});

const TYPES = columnsOf({ x: "text" });

async function start(more: Partial<TaskHostConfig> = {}): Promise<TestHost> {
  return loadHost({ "tasks.py": MODULE }, more);
}

const open = (host: TestHost, name: string): Promise<Transform> =>
  host.open({ language: "PYTHON", name, params: {} }, TYPES);

async function call(host: TestHost, name: string): Promise<string | null | undefined> {
  const [row] = await (await open(host, name)).apply([["x"]], neverAborted);
  return row?.[0];
}

const pidOf = async (host: TestHost): Promise<number> => Number(await call(host, "pid"));

describe.skipIf(!hasPython)("a Python task that misbehaves", () => {
  it.each(["forever", "forever_in_c", "forever_with_child"])(
    "R2.4 %s is killed at its time limit, and the next task runs in a new process",
    async (name) => {
      const host = await start({ batchTimeoutMs: 1500 });
      const before = await pidOf(host);
      const message = expect.stringMatching(/did not finish a batch within 1.5 s[\s\S]*tasks\.py/);
      await expect(call(host, name)).rejects.toMatchObject({ code: "TASK_TIMEOUT", retry: "never", message });
      expect(await isAlive(before)).toBe(false);
      expect(await pidOf(host)).not.toBe(before);
      const child = /child (\d+)/.exec(host.logged.join("\n"))?.[1];
      expect(child !== undefined).toBe(name === "forever_with_child");
      if (child !== undefined) await until("the child is gone", async () => !(await isAlive(Number(child))));
    },
  );

  it.each([
    ["os_exit", /ended with exit code 0 in task os_exit\. It printed last:\nso long/],
    ["crash", /was ended by SIGSEGV in task crash/],
    ["killed", /was ended by SIGKILL in task killed/],
    ["garbage", /answered garbage in task garbage/],
    ["wrong_reply", /answered garbage in task wrong_reply/],
  ])("R2.4 %s is told as the loss of the worker, and may be tried again", async (name, message) => {
    const host = await start();
    const before = await pidOf(host);
    const lost = { code: "TASK_WORKER_LOST", retry: "retry", message: expect.stringMatching(message) };
    await expect(call(host, name)).rejects.toMatchObject(lost);
    expect(await pidOf(host)).not.toBe(before);
  });

  it.each([
    ["sys_exit", /Task sys_exit called sys\.exit\(\):[\s\S]*SystemExit: 3/],
    ["odd_message", /ValueError: half/],
    ["hog", /Task hog ran out of memory; its limit is 256 MiB/],
    ["hog_of_small_things", /ran out of memory; its limit is 256 MiB/],
  ])("R2.4 %s fails its batch only", async (name, message) => {
    const host = await start({ memoryLimitMib: 256 });
    const before = await pidOf(host);
    const failure = { code: "TASK_FAILED", retry: "never", message: expect.stringMatching(message) };
    await expect(call(host, name)).rejects.toMatchObject(failure);
    expect(await pidOf(host)).toBe(before);
  });

  it("R2.4 may print and read as it likes: the protocol does not notice", async () => {
    const host = await start();
    expect(await call(host, "noise")).toBe("x");
    expect(await call(host, "reads_stdin")).toBe("");
    await until("the noise is logged", () => /noise[\s\S]*more/.test(host.logged.join("\n")));
  });

  it("R2.4 answers once although it forks", async () => {
    const host = await start();
    expect(await call(host, "forks")).toBe("parent");
    expect(await call(host, "noise")).toBe("x");
  });
});

describe.skipIf(!hasPython)("the Python worker", () => {
  it("R2.4 is one process for all batches and tasks", async () => {
    const host = await start();
    const pid = await open(host, "pid");
    const pids = new Set<unknown>();
    for (let batch = 0; batch < 50; batch += 1) pids.add((await pid.apply([["x"]], neverAborted))[0]?.[0]);
    pids.add(String(await pidOf(host)));
    expect(pids.size).toBe(1);
  });

  it("R2.4 serves others, and goes on with an open task, after one was killed", async () => {
    const host = await start({ batchTimeoutMs: 1000 });
    const pid = await open(host, "pid");
    const stuck = call(host, "forever");
    const waiting = pid.apply([["x"]], neverAborted);
    await expect(stuck).rejects.toMatchObject({ code: "TASK_TIMEOUT" });
    expect((await waiting).length).toBe(1);
    await pid.close();
  });

  it("R2.4 is killed when the result is not wanted any more, also before its turn", async () => {
    const host = await start();
    const before = await pidOf(host);
    const forever = await open(host, "forever");
    const slow = await open(host, "slow");
    const control = new AbortController();
    const [running, waiting] = [forever.apply([["x"]], control.signal), slow.apply([["x"]], control.signal)];
    const reason = new Error("the lease is lost");
    setImmediate(() => control.abort(reason));
    await expect(running).rejects.toBe(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(slow.apply([["x"]], control.signal)).rejects.toBe(reason);
    await until("the worker is gone", async () => !(await isAlive(before)));
    expect(await slow.apply([["x"]], neverAborted)).toEqual([["x"]]);
  });

  it("R8.4 knows no secrets of the runner", async () => {
    const host = await start({
      environment: { ...process.env, DATABASE_URL: "postgres://u:secret@h/d", API_KEY: "k" },
    });
    const names = (await call(host, "environment"))?.split(" ");
    expect(names).toContain("PATH");
    expect(names).not.toContain("DATABASE_URL");
    expect(names).not.toContain("API_KEY");
  });

  it("R2.4 leaves nothing behind when it is closed", async () => {
    const host = await start();
    const pids = [await pidOf(host), Number(await call(host, "leaves_a_child"))];
    // A program that is just being started has no command line for a moment.
    await until("both run", async () => !(await Promise.all(pids.map(isAlive))).includes(false));
    await host.close();
    await until("all are gone", async () => !(await Promise.all(pids.map(isAlive))).includes(true));
    await expect(call(host, "pid")).rejects.toMatchObject({ code: "TASK_WORKER_LOST" });
  });
});
