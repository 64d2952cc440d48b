"""What the operators have in common: the connection, deferring, and a time limit."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.configuration import conf

from vitrina_provider.hook import VitrinaHook
from vitrina_provider.problems import VitrinaApiError, VitrinaError, task_failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from vitrina_provider.deadlines import Deadline


class VitrinaOperator(BaseOperator):
    """
    Asks Vitrina for something about a pipeline, and waits until it is done.

    :param pipeline: name or id of the pipeline (templated)
    :param vitrina_conn_id: connection of type `vitrina`
    :param timeout: how long to wait in one try; None waits as long as it takes
    :param deferrable: wait in the triggerer instead of a worker; the default is `[operators] default_deferrable`
    """

    template_fields: Sequence[str] = ("pipeline", "vitrina_conn_id")
    ui_color = "#e8f0e4"

    def __init__(
        self,
        *,
        pipeline: str,
        vitrina_conn_id: str = VitrinaHook.default_conn_name,
        timeout: timedelta | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.vitrina_conn_id = vitrina_conn_id
        self.timeout = timeout
        self.deferrable = deferrable

    @cached_property
    def hook(self) -> VitrinaHook:
        return VitrinaHook(self.vitrina_conn_id)

    def deadline_from_now(self) -> Deadline:
        return None if self.timeout is None else time.time() + self.timeout.total_seconds()


@contextmanager
def failing_the_task() -> Iterator[None]:
    """Turns a refusal of the API into a failed task, which Airflow retries only if that can help."""
    try:
        yield
    except VitrinaError as error:
        # A status can change by itself, unlike a wrong key or a missing pipeline.
        is_status = isinstance(error, VitrinaApiError) and error.code == "STATUS_CONFLICT"
        raise task_failure(str(error), may_pass=error.may_pass or is_status) from error
