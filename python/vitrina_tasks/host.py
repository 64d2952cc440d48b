"""The worker process: ``python -m vitrina_tasks.host <folder>``. Vitrina starts it; nobody else needs to.

It reads one request per line of JSON and answers each with one line, in order. Values travel as the exact texts of
PostgreSQL, a batch as one list per column.

    {"type": "describe", "protocol": 1}                    → {"type": "described", "protocol": 1, "tasks": […]}
    {"type": "open", "id", "task", "params", "columns"}    → {"type": "opened", "columns": [[name, type], …]}
    {"type": "apply", "id", "columns": [[text, …], …]}     → {"type": "applied", "rows": n, "columns": [[…] | null, …]}
    {"type": "close", "id"}                                → {"type": "closed"}

Each request also has ``time_limit_s``. An unchanged column is answered as null. Any request may be answered
by ``{"type": "failed", "code", "message", "problems"}``, which may have ``delay_s``.
"""

import argparse
import faulthandler
import json
import os
import queue
import signal
import sys
import threading

from .batch import OpenTask
from .problems import TaskProblem, own_traceback
from .registry import load_folder

PROTOCOL = 1
_BUFFER = 1 << 20


class Host:
    def __init__(self, folder, memory_mib):
        self.folder = folder
        self.memory_mib = memory_mib
        self.tasks = {}
        self.opened = {}

    def answer(self, request):
        answers = {"describe": self._describe, "open": self._open, "apply": self._apply, "close": self._close}
        try:
            return answers[request["type"]](request)
        except TaskProblem as problem:
            failed = {"type": "failed", "code": problem.code, "message": str(problem), "problems": problem.problems}
            return failed if problem.delay is None else {**failed, "delay_s": float(problem.delay)}
        except MemoryError as error:
            message = f"The Python worker ran out of memory; its limit is {self.memory_mib} MiB.\n{own_traceback(error)}"
            return {"type": "failed", "code": "TASK_FAILED", "message": message, "problems": []}

    def _describe(self, request):
        if request["protocol"] != PROTOCOL:
            message = f"This is vitrina_tasks with protocol {PROTOCOL}; the runner speaks {request['protocol']}."
            raise TaskProblem("TASK_MODULE_INVALID", message)
        self.tasks = load_folder(self.folder)
        return {"type": "described", "protocol": PROTOCOL, "tasks": [task.describe() for task in self.tasks.values()]}

    def _open(self, request):
        task = self.tasks.get(request["task"])
        if task is None:
            raise TaskProblem("TASK_UNKNOWN", f"There is no Python task {json.dumps(request['task'])}.")
        opened = OpenTask(task, request["params"], request["columns"], self.memory_mib)
        self.opened[request["id"]] = opened
        return {"type": "opened", "columns": opened.output}

    def _apply(self, request):
        rows, columns = self.opened[request["id"]].apply(request["columns"])
        return {"type": "applied", "rows": rows, "columns": columns}

    def _close(self, request):
        self.opened.pop(request["id"], None)
        return {"type": "closed"}


def main():
    parser = argparse.ArgumentParser(prog="python -m vitrina_tasks.host")
    parser.add_argument("folder")
    parser.add_argument("--memory-mib", type=int, default=1024)
    options = parser.parse_args()
    requests, replies = take_over_stdio()
    limit_memory(options.memory_mib)
    folder = os.path.abspath(options.folder)
    os.chdir(folder)
    serve(Host(folder, options.memory_mib), requests, replies)


def take_over_stdio():
    """The two pipes of the protocol. Anything else that prints goes to stderr, and reading stdin yields nothing."""
    requests = os.fdopen(os.dup(0), "rb", buffering=_BUFFER)
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, replies


def limit_memory(memory_mib):
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, memory_mib << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError) as error:
        print(f"The memory of Python tasks is not limited on this system: {error}", file=sys.stderr)


def serve(host, requests, replies):
    """Answers requests until the runner is gone. A task that forks must not answer twice."""
    lines = queue.SimpleQueue()
    threading.Thread(target=read_lines, args=(requests, lines), daemon=True).start()
    pid = os.getpid()
    while True:
        request = json.loads(lines.get())
        # A watchdog in C: it works while a task holds the interpreter lock, and prints where the task is stuck.
        faulthandler.dump_traceback_later(request["time_limit_s"], exit=True, file=2)
        reply = host.answer(request)
        if os.getpid() != pid:
            os._exit(1)
        faulthandler.cancel_dump_traceback_later()
        del request
        line = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
        # Only the message of an exception may contain what UTF-8 cannot encode; in JSON it becomes an escape.
        write_all(replies, f"{line}\n".encode(errors="backslashreplace"))


def read_lines(requests, lines):
    """In its own thread, so that the end of the runner is noticed while a task is working."""
    for line in requests:
        lines.put(line)
    end_group()


def write_all(stream, data):
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def end_group():
    """The worker leads a process group; what a task started ends with it."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
