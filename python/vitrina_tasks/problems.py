"""The errors that leave the worker. Each has a code of the error catalogue and a sentence for a person."""

import os
import traceback
from pathlib import Path

_PACKAGE = str(Path(__file__).parent) + os.sep
_LONGEST_TRACEBACK = 6000


class RetryLater(Exception):
    """Raised by a task when what it needs is not available yet; the run waits and tries the batch again.

    ``delay``: in seconds, no sooner than this.
    """

    def __init__(self, message, delay=None):
        super().__init__(message)
        self.delay = delay


class TaskProblem(Exception):
    """Something that a person must correct: in the task, in its parameters, or in the folder."""

    def __init__(self, code, message, problems=(), delay=None):
        super().__init__(message)
        self.code = code
        self.problems = list(problems)
        self.delay = delay


def task_failed(name, error, memory_mib=None):
    """The problem that an exception of a task's own code becomes."""
    if isinstance(error, RetryLater):
        message = f"Task {name} asks to be tried again later: {error}"
        return TaskProblem("TASK_RETRY_LATER", message, delay=error.delay)
    if isinstance(error, MemoryError):
        # The task's variables still hold all the memory; the lines below need a little of it.
        traceback.clear_frames(error.__traceback__)
        what = "ran out of memory" if memory_mib is None else f"ran out of memory; its limit is {memory_mib} MiB"
    elif isinstance(error, SystemExit):
        what = "called sys.exit()"
    else:
        what = "failed"
    return TaskProblem("TASK_FAILED", f"Task {name} {what}:\n{own_traceback(error)}")


def own_traceback(error):
    """The traceback without the frames of this package and of the import machinery."""
    summary = traceback.TracebackException.from_exception(error)
    part = summary
    while part is not None:
        own = [frame for frame in part.stack if not frame.filename.startswith((_PACKAGE, "<frozen importlib"))]
        part.stack = traceback.StackSummary.from_list(own)
        part = part.__cause__ or part.__context__
    return "".join(summary.format())[-_LONGEST_TRACEBACK:].strip()
