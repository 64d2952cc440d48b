"""Compares source and target of a pipeline."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, NoReturn

from vitrina_provider.deadlines import at_most, has_passed
from vitrina_provider.operators.base import VitrinaOperator, failing_the_task
from vitrina_provider.problems import task_failure
from vitrina_provider.reconciles import is_over, result_of
from vitrina_provider.task_key import task_key
from vitrina_provider.triggers.reconcile import VitrinaReconcileTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from vitrina_provider.deadlines import Deadline


class VitrinaReconcileOperator(VitrinaOperator):
    """
    Compares source and target of a pipeline, and fails when they differ.

    It changes nothing, so when the task is killed the comparison may finish. A retried task keeps waiting for
    the comparison that it has already asked for; when that one found differences, it compares again.

    :param max_differences: so many rows may be missing, extra or different; None only tells and never fails for them
    :param poll_seconds: how often it is looked whether the comparison has ended
    """

    def __init__(self, *, max_differences: int | None = 0, poll_seconds: float = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_differences = max_differences
        self.poll_seconds = poll_seconds

    def execute(self, context: Context) -> dict[str, Any]:
        deadline = self.deadline_from_now()
        with failing_the_task():
            pipeline_id, reconcile_id = self._request_reconcile(task_key(context, "reconcile", self.pipeline))
            return self._follow(pipeline_id, reconcile_id, deadline)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        del context
        with failing_the_task():
            return self._follow(event["pipeline_id"], event["reconcile_id"], event["deadline"])

    def _request_reconcile(self, key: str) -> tuple[str, str]:
        for number in itertools.count():
            reconcile, was_asked = self.hook.request_reconcile(self.pipeline, f"{key}-{number}")
            pipeline_id, reconcile_id = reconcile["pipeline_id"], reconcile["id"]
            if not was_asked:
                self.log.info("Asked Vitrina to compare source and target of %s: %s.", self.pipeline, reconcile_id)
                break
            now = self.hook.reconcile(pipeline_id, reconcile_id)
            if not is_over(now) or now["status"] == "MATCH":
                self.log.info("An earlier try has asked to compare %s: %s.", self.pipeline, reconcile_id)
                break
        return pipeline_id, reconcile_id

    def _follow(self, pipeline_id: str, reconcile_id: str, deadline: Deadline) -> dict[str, Any]:
        while True:
            reconcile = self.hook.reconcile(pipeline_id, reconcile_id)
            if is_over(reconcile):
                return result_of(self.pipeline, reconcile, self.max_differences)
            if has_passed(deadline):
                raise task_failure(f"{self.pipeline} was not compared within {self.timeout}.", may_pass=True)
            if self.deferrable:
                self._defer(pipeline_id, reconcile_id, deadline)
            time.sleep(at_most(self.poll_seconds, deadline))

    def _defer(self, pipeline_id: str, reconcile_id: str, deadline: Deadline) -> NoReturn:
        trigger = VitrinaReconcileTrigger(
            vitrina_conn_id=self.vitrina_conn_id,
            deadline=deadline,
            pipeline_id=pipeline_id,
            reconcile_id=reconcile_id,
            poll_seconds=self.poll_seconds,
        )
        self.defer(trigger=trigger, method_name="execute_complete")
