"""How a request to run has ended, and what that means for the task that asked."""

from __future__ import annotations

from typing import Any

from vitrina_provider.problems import PASSING_CODES, task_failure

_COUNTS = (
    "rows_read",
    "rows_written",
    "rows_unchanged",
    "rows_deduplicated",
    "rows_rejected",
    "rows_dropped",
    "rows_added",
    "rows_deleted",
    "batches",
)

_STOPPED = ("PAUSED", "CANCELLED")


def has_ended_badly(status: dict[str, Any]) -> bool:
    """True when the request is over and did not succeed."""
    run = status["last_run"]
    return bool(status["over"]) and (run is None or run["status"] != "SUCCESS")


def is_stuck(status: dict[str, Any]) -> bool:
    """Runners take only enabled pipelines, so waiting for this one would never end."""
    return status["status"] == "RUN_REQUESTED" and not status["enabled"]


def result_of(status: dict[str, Any], *, fail_fast: bool) -> dict[str, Any]:
    """What a succeeded run leaves in XCom; for any other end, the exception that fails the task."""
    name, run = status["name"], status["last_run"]
    if run is None:
        # Somebody withdrew the request before a runner took it. A retry would ask again against their will.
        raise task_failure(f"{name} did not run: the request was withdrawn.", may_pass=not fail_fast)
    if run["status"] in _STOPPED:
        # Somebody stopped it in Vitrina. A retry would resume it against their will.
        hint = "It continues where it stopped when it is run again: clear the task, or run it in Vitrina."
        raise task_failure(f"{name} was {run['status'].lower()} before it finished. {hint}", may_pass=not fail_fast)
    if run["status"] != "SUCCESS":
        code = run["error_code"] or "UNKNOWN"
        sentence = run["error"] or "Nothing is known of the cause."
        message = f"{name} failed: {sentence} [{code}, run {run['id']}]"
        raise task_failure(message, may_pass=not fail_fast or code in PASSING_CODES)
    counts = {count: run[count] for count in _COUNTS}
    return {"pipeline": name, "run_id": run["id"], "run_request": run["run_request"], **counts}
