"""The sensor, on the real API."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from airflow.sdk.exceptions import AirflowFailException
from conftest import until
from tries import TaskTries

from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator
from vitrina_provider.sensors.freshness import VitrinaFreshnessSensor

if TYPE_CHECKING:
    from conftest import Pipelines


def sensor(pipeline: str, max_age: timedelta) -> VitrinaFreshnessSensor:
    return VitrinaFreshnessSensor(task_id="it", pipeline=pipeline, max_age=max_age, mode="reschedule")


def test_a_pipeline_without_a_success_is_not_fresh_and_one_with_is(pipelines: Pipelines) -> None:
    name = pipelines.create()
    fresh = sensor(name, timedelta(hours=1))
    assert not fresh.poke({})
    task = VitrinaRunPipelineOperator(task_id="run", pipeline=name)
    result = task.execute(TaskTries().next_try(task))
    found = fresh.poke({})
    assert found.is_done
    assert found.xcom_value["run_id"] == result["run_id"]


def test_a_success_grows_old(pipelines: Pipelines) -> None:
    name = pipelines.create()
    task = VitrinaRunPipelineOperator(task_id="run", pipeline=name)
    task.execute(TaskTries().next_try(task))
    demanding = sensor(name, timedelta(seconds=1))
    until("the success is too old", lambda: not demanding.poke({}))
    assert sensor(name, timedelta(hours=1)).poke({})


def test_a_failure_after_it_does_not_make_a_success_older(pipelines: Pipelines) -> None:
    name = pipelines.create()
    task = VitrinaRunPipelineOperator(task_id="run", pipeline=name)
    task.execute(TaskTries().next_try(task))
    pipelines.patch(name, source_query="SELECT id, name, 1 / length(left(name, 0)) AS broken FROM content.genre")
    with pytest.raises(AirflowFailException):
        task.execute(TaskTries().next_try(task))
    assert sensor(name, timedelta(hours=1)).poke({})


def test_a_missing_pipeline_is_not_waited_for() -> None:
    with pytest.raises(AirflowFailException, match="PIPELINE_NOT_FOUND"):
        sensor("no_such_pipeline", timedelta(hours=1)).poke({})
