"""How the operator asks, waits, retries and is killed, on the real API."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred
from conftest import SLOW
from tries import TaskTries

from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Pipelines

BROKEN = {"source_query": "SELECT id, 1 / length(left(name, 0)) AS broken FROM content.genre"}


def operator(pipeline: str, **settings: Any) -> VitrinaRunPipelineOperator:
    return VitrinaRunPipelineOperator(**{"task_id": "it", "pipeline": pipeline, "wait_seconds": 2, **settings})


class InThread(threading.Thread):
    """A task that is at work while the test does something to it."""

    def __init__(self, task: VitrinaRunPipelineOperator, tries: TaskTries | None = None) -> None:
        super().__init__(daemon=True)
        self._execute = lambda: task.execute((tries or TaskTries()).next_try(task))
        self._result: dict[str, Any] | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._execute()
        except BaseException as error:
            self._error = error

    def end(self) -> dict[str, Any]:
        self.join(240)
        assert not self.is_alive(), "The task did not end."
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result


def test_a_second_run_finds_everything_unchanged(pipelines: Pipelines) -> None:
    task = operator(pipelines.create())
    task.execute(TaskTries().next_try(task))
    result = task.execute(TaskTries().next_try(task))
    assert (result["run_request"], result["rows_read"], result["rows_written"]) == (2, 26, 0)
    assert result["rows_unchanged"] == 26


def test_a_failure_tells_code_sentence_and_hint_and_is_not_retried_in_vain(pipelines: Pipelines) -> None:
    name = pipelines.create(**BROKEN)
    task = operator(name)
    with pytest.raises(AirflowFailException) as failed:
        task.execute(TaskTries().next_try(task))
    (run,) = pipelines.runs(name)
    assert f"[{run['error_code']}, run {run['id']}]" in str(failed.value)
    assert run["error"] in str(failed.value)


def test_with_fail_fast_off_every_failure_is_left_to_the_retries(pipelines: Pipelines) -> None:
    task = operator(pipelines.create(**BROKEN), fail_fast=False)
    with pytest.raises(AirflowException) as failed:
        task.execute(TaskTries().next_try(task))
    assert not isinstance(failed.value, AirflowFailException)


def test_a_missing_pipeline_and_a_disabled_one_are_not_retried(pipelines: Pipelines) -> None:
    for name in ("no_such_pipeline", pipelines.create(enabled=False)):
        task = operator(name)
        with pytest.raises(AirflowFailException):
            task.execute(TaskTries().next_try(task))


def test_a_run_that_somebody_pauses_fails_the_task_and_is_resumed_by_clearing_it(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task, tries = operator(name), TaskTries()
    working = InThread(task, tries)
    pipelines.until_it_writes(name)
    pipelines.post(name, "pause")
    with pytest.raises(AirflowFailException, match="was paused before it finished"):
        working.end()
    tries.clear()
    pipelines.patch(name, batch_size=10_000)
    result = task.execute(tries.next_try(task))
    # A load in parts is followed by a whole one, and the task waits for it.
    paused, resumed, followed = pipelines.runs(name)
    assert (resumed["status"], followed["status"]) == ("SUCCESS", "SUCCESS")
    assert result["run_id"] == followed["id"]
    assert paused["rows_read"] + resumed["rows_read"] == 50_000


def test_a_retry_waits_for_the_run_that_was_already_asked_for(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    tries = TaskTries()
    # The first worker is lost without a word: its thread is left alone, and its answer is never used.
    first = operator(name, when_killed="detach")
    InThread(first, tries)
    pipelines.until_it_writes(name)
    retried = InThread(operator(name), tries)
    pipelines.patch(name, batch_size=10_000)
    result = retried.end()
    assert [run["id"] for run in pipelines.runs(name)] == [result["run_id"]]


def test_a_retry_takes_the_success_of_the_run_that_was_already_asked_for(pipelines: Pipelines) -> None:
    name = pipelines.create()
    task, tries = operator(name), TaskTries()
    first = task.execute(tries.next_try(task))
    assert task.execute(tries.next_try(task)) == first
    assert len(pipelines.runs(name)) == 1


def test_a_retry_after_a_failed_run_asks_for_another_one_and_the_next_retry_knows_that_one(
    pipelines: Pipelines,
) -> None:
    name = pipelines.create(**BROKEN)
    task, tries = operator(name), TaskTries()
    with pytest.raises(AirflowException):
        task.execute(tries.next_try(task))
    pipelines.patch(name, source_query="SELECT id, 1 AS broken FROM content.genre")
    second = task.execute(tries.next_try(task))
    third = task.execute(tries.next_try(task))
    assert [run["status"] for run in pipelines.runs(name)] == ["FAILED", "SUCCESS"]
    assert second == third


def test_a_cleared_task_runs_again(pipelines: Pipelines) -> None:
    name = pipelines.create()
    task, tries = operator(name), TaskTries()
    task.execute(tries.next_try(task))
    tries.clear()
    assert task.execute(tries.next_try(task))["run_request"] == 2


def test_full_reads_everything_once_and_not_again_in_a_retry(pipelines: Pipelines, connect: Callable[..., str]) -> None:
    admin = connect(password=os.environ["VITRINA_TEST_ADMIN_KEY"])
    query = "SELECT id, name, modified FROM content.genre"
    name = pipelines.create(source_query=query, mode="incremental", incremental_key="modified", incremental_id_key="id")
    plain, whole = operator(name), operator(name, full=True, vitrina_conn_id=admin)
    assert plain.execute(TaskTries().next_try(plain))["rows_read"] == 26
    assert plain.execute(TaskTries().next_try(plain))["rows_read"] < 26
    tries = TaskTries()
    assert whole.execute(tries.next_try(whole))["rows_read"] == 26
    assert whole.execute(tries.next_try(whole))["rows_read"] == 26
    assert len(pipelines.runs(name)) == 3


def test_full_without_the_role_is_refused_before_anything_runs(pipelines: Pipelines) -> None:
    name = pipelines.create()
    task = operator(name, full=True)
    with pytest.raises(AirflowFailException, match="admin"):
        task.execute(TaskTries().next_try(task))
    assert pipelines.runs(name) == []


def test_a_killed_task_pauses_its_run(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task = operator(name)
    working = InThread(task)
    pipelines.until_it_writes(name)
    task.on_kill()
    with pytest.raises(AirflowException, match="was killed"):
        working.end()
    pipelines.until_status(name, "PAUSED")


def test_a_killed_task_leaves_its_run_alone_if_it_is_told_to(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task = operator(name, when_killed="detach")
    working = InThread(task)
    pipelines.until_it_writes(name)
    task.on_kill()
    with pytest.raises(AirflowException, match="was killed"):
        working.end()
    assert pipelines.status(name) == "RUNNING"


def test_a_killed_task_does_not_pause_the_run_of_somebody_else(pipelines: Pipelines) -> None:
    name = pipelines.create()
    task = operator(name)
    task.execute(TaskTries().next_try(task))
    pipelines.patch(name, **SLOW, target_table=f"analytics.{name}_slow")
    pipelines.post(name, "run")
    pipelines.until_it_writes(name)
    task.on_kill()
    assert pipelines.status(name) == "RUNNING"


def test_a_run_that_takes_too_long_is_paused_and_the_retry_continues_it(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    # Already at work, since a run that waits for a runner could not be paused.
    pipelines.post(name, "run")
    pipelines.until_it_writes(name)
    tries = TaskTries()
    hasty = operator(name, timeout=timedelta(seconds=1))
    with pytest.raises(AirflowException, match="has not ended within"):
        hasty.execute(tries.next_try(hasty))
    # The pause may still be under way; the retry waits for its end before it asks to go on.
    patient = operator(name)
    working = InThread(patient, tries)
    pipelines.until_status(name, "RUNNING")
    pipelines.patch(name, batch_size=10_000)
    working.end()
    paused, resumed, followed = pipelines.runs(name)
    assert [run["status"] for run in (paused, resumed, followed)] == ["PAUSED", "SUCCESS", "SUCCESS"]
    assert paused["rows_read"] + resumed["rows_read"] == 50_000


def test_a_deferrable_task_with_nothing_left_to_wait_for_does_not_defer(pipelines: Pipelines) -> None:
    name = pipelines.create()
    tries = TaskTries()
    plain, deferrable = operator(name), operator(name, deferrable=True)
    first = plain.execute(tries.next_try(plain))
    assert deferrable.execute(tries.next_try(deferrable)) == first


def test_a_deferred_task_that_is_woken_too_early_defers_again(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    task = operator(name, deferrable=True)
    context = TaskTries().next_try(task)
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(context)
    event = deferred.value.trigger.serialize()[1]
    with pytest.raises(TaskDeferred) as again:
        task.execute_complete(context, event)
    assert again.value.trigger.serialize() == deferred.value.trigger.serialize()


def test_the_link_leads_to_the_attempts_of_this_request(pipelines: Pipelines) -> None:
    task = operator(pipelines.create())
    assert task.link_to_runs == ""
    result = task.execute(TaskTries().next_try(task))
    path = task.link_to_runs.split("/api/v1")[1]
    assert [run["id"] for run in pipelines.client.get(path).json()["items"]] == [result["run_id"]]


@pytest.mark.parametrize("settings", [{"when_killed": "explode"}, {"wait_seconds": 0}, {"wait_seconds": 61}])
def test_wrong_settings_are_refused_when_the_dag_is_read(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        operator("any", **settings)
