"""A button in Airflow that leads to the run in Vitrina."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class VitrinaRunLink(BaseOperatorLink):
    """Shows every attempt of the request, as the API reports it."""

    name = "Runs in Vitrina"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The worker calls this at the end of the task, so the operator still knows what it followed."""
        del ti_key
        return str(getattr(operator, "link_to_runs", ""))
