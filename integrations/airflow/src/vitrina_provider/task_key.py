"""The Idempotency-Keys of a task: they let a retried task find the run that it has already requested."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context


def task_key(context: Context, operation: str, pipeline: str) -> str:
    """
    The same for every try of a task, and another one after somebody cleared the task.

    Airflow raises `max_tries` by the tries used so far when a task is cleared, and leaves it alone when it retries. So
    its distance from `retries` tells one series of tries from the next. Nothing has to be stored in Airflow, and there
    is no moment between asking and storing in which a lost worker could forget that it has asked. A number is appended:
    when what an earlier try asked for has ended badly, the next number makes a new request.
    """
    ti = context["ti"]
    series = ti.max_tries - (ti.task.retries or 0)
    parts = [operation, pipeline, ti.dag_id, ti.task_id, ti.run_id, ti.map_index, series]
    return f"airflow-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]}"
