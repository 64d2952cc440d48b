"""Waits until a mart is fresh enough to be used."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowSensorTimeout

from vitrina_provider.deadlines import has_passed
from vitrina_provider.hook import VitrinaHook
from vitrina_provider.operators.base import failing_the_task
from vitrina_provider.triggers.freshness import VitrinaFreshnessTrigger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow.sdk import Context


class VitrinaFreshnessSensor(BaseSensorOperator):
    """
    Waits until the last success of a pipeline is no older than `max_age`, by the API's clock.

    XCom gets the id of that run and when it ended. `mode`, `poke_interval`, `timeout` and `soft_fail` are those of
    every sensor.

    :param pipeline: name or id of the pipeline (templated)
    :param max_age: how long ago the last success may have ended
    :param vitrina_conn_id: connection of type `vitrina`
    :param deferrable: wait in the triggerer instead of a worker; the default is `[operators] default_deferrable`
    """

    template_fields: Sequence[str] = ("pipeline", "vitrina_conn_id")
    ui_color = "#e4ecf0"

    def __init__(
        self,
        *,
        pipeline: str,
        max_age: timedelta,
        vitrina_conn_id: str = VitrinaHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.max_age = max_age
        self.vitrina_conn_id = vitrina_conn_id
        self.deferrable = deferrable

    @cached_property
    def hook(self) -> VitrinaHook:
        return VitrinaHook(self.vitrina_conn_id)

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        return self._look(time.time() + self.timeout)

    def poke(self, context: Context) -> PokeReturnValue:
        del context
        found = self._fresh_run()
        return PokeReturnValue(is_done=found is not None, xcom_value=found)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        del context
        return self._look(event["deadline"])

    def _look(self, deadline: float) -> dict[str, Any]:
        found = self._fresh_run()
        if found is None:
            self._defer(deadline)
        return found

    def _defer(self, deadline: float) -> NoReturn:
        if has_passed(deadline):
            raise AirflowSensorTimeout(f"{self.pipeline} has not succeeded within the last {self.max_age}.")
        trigger = VitrinaFreshnessTrigger(
            vitrina_conn_id=self.vitrina_conn_id,
            deadline=deadline,
            pipeline=self.pipeline,
            max_age_seconds=self.max_age.total_seconds(),
            poll_seconds=self.poke_interval,
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def _fresh_run(self) -> dict[str, Any] | None:
        with failing_the_task():
            found = self.hook.last_success(self.pipeline)
        if found is None:
            self.log.info("%s has never succeeded.", self.pipeline)
            return None
        run, age = found
        self.log.info("%s succeeded %d s ago.", self.pipeline, age.total_seconds())
        if age > self.max_age:
            return None
        return {"pipeline": run["pipeline_name"], "run_id": run["id"], "finished_at": run["finished_at"]}
