"""How a reconcile has ended, and what that means for the task that asked."""

from __future__ import annotations

from typing import Any

from vitrina_provider.problems import PASSING_CODES, task_failure

_OVER = ("MATCH", "DIFFERENT", "INCONCLUSIVE", "FAILED")


def is_over(reconcile: dict[str, Any]) -> bool:
    return reconcile["status"] in _OVER


def result_of(pipeline: str, reconcile: dict[str, Any], max_differences: int | None) -> dict[str, Any]:
    """What goes to XCom; more differences than allowed fail the task. Without a limit they are only reported."""
    status = reconcile["status"]
    if status == "FAILED":
        code = reconcile["error_code"] or "UNKNOWN"
        message = f"{pipeline} could not be compared with its target: {reconcile['error']} [{code}]"
        raise task_failure(message, may_pass=code in PASSING_CODES)
    report = reconcile["report"] or {}
    counts = {kind: report.get(kind, {}).get("count", 0) for kind in ("missing", "extra", "different", "pending")}
    differences = counts["missing"] + counts["extra"] + counts["different"]
    notes = " ".join(report.get("notes", []))
    if max_differences is not None:
        if status == "INCONCLUSIVE":
            raise task_failure(f"The comparison of {pipeline} is inconclusive. {notes}".strip(), may_pass=True)
        if differences > max_differences:
            told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if kind != "pending")
            message = f"Source and target of {pipeline} differ: {told} rows. {notes}".strip()
            raise task_failure(f"{message} [reconcile {reconcile['id']}]", may_pass=True)
    return {"pipeline": pipeline, "reconcile_id": reconcile["id"], "status": status, **counts}
