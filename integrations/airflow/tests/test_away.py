"""The API disappears for a while in the middle of a wait."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from conftest import SLOW, until
from tries import TaskTries

from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Pipelines, Printed
    from own_api import OwnApi


def operator(pipeline: str, conn_id: str, **settings: Any) -> VitrinaRunPipelineOperator:
    return VitrinaRunPipelineOperator(task_id="it", pipeline=pipeline, vitrina_conn_id=conn_id, **settings)


def test_a_task_survives_a_restart_of_the_api(
    pipelines: Pipelines, connect: Callable[..., str], own_api: OwnApi, printed: Printed
) -> None:
    name = pipelines.create(**SLOW)
    task = operator(name, connect(port=own_api.port))
    results: list[dict[str, Any]] = []
    working = threading.Thread(target=lambda: results.append(task.execute(TaskTries().next_try(task))), daemon=True)
    working.start()
    pipelines.until_it_writes(name)
    own_api.kill()
    until("the task has noticed", lambda: "Trying again" in printed.text())
    own_api.start()
    pipelines.patch(name, batch_size=10_000)
    working.join(240)
    assert [run["id"] for run in pipelines.runs(name)] == [result["run_id"] for result in results]


async def test_a_trigger_survives_a_restart_of_the_api(
    pipelines: Pipelines, connect: Callable[..., str], own_api: OwnApi, printed: Printed
) -> None:
    name = pipelines.create(**SLOW)
    task = operator(name, connect(port=own_api.port), deferrable=True)
    context = TaskTries().next_try(task)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)
    fired = asyncio.create_task(anext(deferred.value.trigger.run()))
    await asyncio.to_thread(pipelines.until_it_writes, name)
    await asyncio.to_thread(own_api.kill)
    await asyncio.to_thread(until, "the trigger has noticed", lambda: "Trying again" in printed.text())
    await asyncio.to_thread(own_api.start)
    pipelines.patch(name, batch_size=10_000)
    event = await asyncio.wait_for(fired, 240)
    result = task.execute_complete(context, event.payload)
    assert [run["id"] for run in pipelines.runs(name)] == [result["run_id"]]


def test_an_api_that_stays_away_fails_the_task_which_may_be_retried(
    pipelines: Pipelines, connect: Callable[..., str], own_api: OwnApi
) -> None:
    name = pipelines.create()
    own_api.kill()
    task = operator(name, connect(port=own_api.port, extra={"patience_seconds": 1}))
    tries = TaskTries()
    with pytest.raises(AirflowException, match="does not answer") as failed:
        task.execute(tries.next_try(task))
    assert not isinstance(failed.value, AirflowFailException)
    own_api.start()
    assert task.execute(tries.next_try(task))["rows_read"] == 26
