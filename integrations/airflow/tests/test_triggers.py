"""The triggers as the triggerer uses them: recreated from their serialized form, and run by asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from conftest import SLOW
from tries import TaskTries

from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.triggers.base import BaseTrigger
    from conftest import Pipelines


def deferred(pipeline: str, **settings: Any) -> tuple[VitrinaRunPipelineOperator, Context, BaseTrigger]:
    """A task that has deferred itself, and its trigger as another process gets it."""
    task = VitrinaRunPipelineOperator(
        **{"task_id": "it", "pipeline": pipeline, "deferrable": True, "wait_seconds": 2, **settings}
    )
    context = TaskTries().next_try(task)
    with pytest.raises(TaskDeferred) as raised:
        task.execute(context)
    path, arguments = raised.value.trigger.serialize()
    return task, context, import_string(path)(**arguments)


async def fires(trigger: BaseTrigger) -> dict[str, Any]:
    event = await asyncio.wait_for(anext(trigger.run()), 240)
    return dict(event.payload)


async def test_it_fires_when_the_run_has_ended(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task, context, trigger = deferred(name)
    firing = asyncio.create_task(fires(trigger))
    await asyncio.to_thread(pipelines.until_it_writes, name)
    assert not firing.done()
    pipelines.patch(name, batch_size=10_000)
    result = task.execute_complete(context, await firing)
    (run,) = pipelines.runs(name)
    assert (result["run_id"], result["rows_read"]) == (run["id"], 50_000)


async def test_the_task_fails_as_it_would_in_a_worker(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task, context, trigger = deferred(name)
    await asyncio.to_thread(pipelines.until_it_writes, name)
    pipelines.post(name, "pause")
    event = await fires(trigger)
    with pytest.raises(AirflowFailException, match="was paused before it finished"):
        task.execute_complete(context, event)


async def test_it_fires_at_the_deadline_and_the_task_pauses_the_run(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task, context, trigger = deferred(name)
    await asyncio.to_thread(pipelines.until_it_writes, name)
    trigger.deadline = time.time() + 1
    event = await fires(trigger)
    with pytest.raises(AirflowException, match="has not ended within"):
        task.execute_complete(context, event)
    pipelines.until_status(name, "PAUSED")


async def test_it_fires_when_the_pipeline_is_gone(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task, context, trigger = deferred(name)
    await asyncio.to_thread(pipelines.remove_all)
    event = await fires(trigger)
    with pytest.raises(AirflowFailException, match="PIPELINE_NOT_FOUND"):
        task.execute_complete(context, event)


async def test_a_deferred_task_that_a_person_ends_pauses_its_run(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    _, _, trigger = deferred(name)
    await asyncio.to_thread(pipelines.until_it_writes, name)
    await trigger.on_kill()
    await asyncio.to_thread(pipelines.until_status, name, "PAUSED")


async def test_a_deferred_task_leaves_its_run_alone_if_it_is_told_to(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    _, _, trigger = deferred(name, when_killed="detach")
    await asyncio.to_thread(pipelines.until_it_writes, name)
    await trigger.on_kill()
    assert pipelines.status(name) == "RUNNING"


async def test_a_triggerer_that_is_stopped_does_not_touch_the_run(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    _, _, trigger = deferred(name)
    firing = asyncio.create_task(fires(trigger))
    await asyncio.to_thread(pipelines.until_it_writes, name)
    firing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await firing
    await trigger.cleanup()
    assert pipelines.status(name) == "RUNNING"
