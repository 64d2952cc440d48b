"""Tasks are functions of the modules in one folder. Nothing else is ever imported by name."""

import importlib
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from .params import check_schema, json_schema
from .problems import TaskProblem, own_traceback

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, eq=False)
class Task:
    name: str
    description: str
    function: Callable
    params: dict = field(default_factory=dict)
    columns: Any = ()

    def describe(self):
        return {"name": self.name, "description": self.description, "params": json_schema(self.params)}

    def output_columns(self, given, params):
        """All columns of the result as (name, type)."""
        if callable(self.columns):
            return [tuple(column) for column in self.columns(list(given), params)]
        declared = dict(self.columns)
        kept = [(name, declared.pop(name, type_name)) for name, type_name in given]
        return kept + list(declared.items())


def task(*, name, description="", params=None, columns=()):
    """Makes ``function(rows, params)`` a task; the function itself stays as it is.

    ``rows`` is a list of dicts, and so is the result, or any iterable: a generator may yield it.
    ``columns``: a list of ``(name, type)`` added behind those of the input, or given another type in their place; or a
    function ``(columns, params)`` that returns all columns of the result; without it they are those of the input.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"the name of a task must be lower-case letters, digits and _; {name!r} is not")
    check_schema(name, params or {})

    def register(function):
        function.vitrina_task = Task(name, description, function, params or {}, columns)
        return function

    return register


def load_folder(folder):
    """The tasks of every module of the folder by name. Helpers (``_names.py``) and tests are left out."""
    tasks = {}
    for file in sorted(Path(folder).glob("*.py")):
        if not file.name.startswith(("_", ".", "test_")):
            for found in load_module(file):
                if tasks.setdefault(found.name, found) is not found:
                    raise _invalid(file, f"task {found.name} is already defined in another module")
    return tasks


def load_module(file):
    """The tasks of one file. It may import its neighbours."""
    if file.stem in sys.stdlib_module_names or not file.stem.isidentifier():
        raise _invalid(file, "it has the name of a module of Python itself, or none a module can have; rename it")
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    try:
        module = importlib.import_module(file.stem)
    except BaseException as error:  # a module may call sys.exit, too
        raise _invalid(file, f"\n{own_traceback(error)}") from error
    found = [getattr(value, "vitrina_task", None) for value in vars(module).values() if callable(value)]
    tasks = [each for each in found if isinstance(each, Task)]
    if not tasks:
        raise _invalid(file, "it defines no task; the name of a helper must begin with _")
    return tasks


def _invalid(file, problem):
    return TaskProblem("TASK_MODULE_INVALID", f"{file} cannot be loaded: {problem}")
