"""Tries of one task, as Airflow numbers them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context


@dataclass
class TaskTries:
    """What Airflow keeps of a task instance over its tries: a retry leaves max_tries alone, clearing raises it."""

    run_id: str = field(default_factory=lambda: f"manual__{uuid.uuid4()}")
    retries: int = 3
    try_number: int = 0
    max_tries: int = 3

    def next_try(self, task: BaseOperator) -> Context:
        self.try_number += 1
        task.retries = self.retries
        ti: dict[str, Any] = {"dag_id": "a_dag", "task_id": task.task_id, "run_id": self.run_id, "map_index": -1}
        ti |= {"try_number": self.try_number, "max_tries": self.max_tries, "task": task}
        return cast("Context", {"ti": SimpleNamespace(**ti)})

    def clear(self) -> None:
        self.max_tries = self.try_number + self.retries
