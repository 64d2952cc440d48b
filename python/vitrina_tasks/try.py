"""Runs a task on a file of rows, without Vitrina:

    python -m vitrina_tasks.try my_tasks.py rating_bucket rows.ndjson --params '{"good": 7}' --type rating=numeric

Each line of the file is one row as a JSON object; the result is printed in the same way.
"""

import argparse
import json
import sys
from decimal import Decimal
from pathlib import Path

from .problems import TaskProblem
from .registry import load_module
from .testing import run_task


def main():
    parser = argparse.ArgumentParser(prog="python -m vitrina_tasks.try", description="Runs a task on a file of rows.")
    parser.add_argument("module", type=Path, help="the file with the task")
    parser.add_argument("task", help="the name of the task")
    parser.add_argument("rows", help="a file with one JSON object per line; - for standard input")
    parser.add_argument("--params", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--type", action="append", default=[], metavar="COLUMN=TYPE", help="rating=numeric(3,1)")
    options = parser.parse_args()
    types = dict(pair.split("=", 1) for pair in options.type)
    try:
        tasks = {task.name: task for task in load_module(options.module.resolve())}
        if options.task not in tasks:
            raise TaskProblem("TASK_UNKNOWN", f"{options.module} has no task {options.task}, but {', '.join(tasks)}.")
        for row in run_task(tasks[options.task], read_rows(options.rows), options.params, types):
            print(json.dumps(row, ensure_ascii=False, default=str))
    except TaskProblem as problem:
        raise SystemExit(f"{problem.code}: {problem}") from None


def read_rows(file):
    with sys.stdin if file == "-" else open(file, encoding="utf-8") as lines:
        return [json.loads(line, parse_float=Decimal) for line in lines if line.strip()]


if __name__ == "__main__":
    main()
