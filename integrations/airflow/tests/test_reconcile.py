"""The operator that compares, on the real API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tries import TaskTries

from vitrina_provider.operators.reconcile import VitrinaReconcileOperator
from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator

if TYPE_CHECKING:
    from conftest import Pipelines

SOME = "SELECT id, name FROM content.genre WHERE name < 'F'"
ALL = "SELECT id, name FROM content.genre"


def operator(pipeline: str, **settings: Any) -> VitrinaReconcileOperator:
    return VitrinaReconcileOperator(**{"task_id": "it", "pipeline": pipeline, "poll_seconds": 0.1, **settings})


def load(pipeline: str) -> int:
    task = VitrinaRunPipelineOperator(task_id="load", pipeline=pipeline)
    return int(task.execute(TaskTries().next_try(task))["rows_read"])


@pytest.fixture
def missing(pipelines: Pipelines) -> tuple[str, int]:
    """A pipeline whose target lacks rows of the source, and how many."""
    name = pipelines.create(source_query=SOME)
    loaded = load(name)
    pipelines.patch(name, source_query=ALL)
    assert 0 < loaded < 26
    return name, 26 - loaded


def test_rows_that_are_missing_fail_the_task_and_are_counted(missing: tuple[str, int]) -> None:
    name, count = missing
    task = operator(name)
    with pytest.raises(AirflowException, match=f"{count} missing, 0 extra, 0 different rows") as failed:
        task.execute(TaskTries().next_try(task))
    assert not isinstance(failed.value, AirflowFailException)


def test_so_many_differences_as_allowed_do_not_fail_it(missing: tuple[str, int]) -> None:
    name, count = missing
    for allowed in (count, None):
        task = operator(name, max_differences=allowed)
        result = task.execute(TaskTries().next_try(task))
        assert (result["status"], result["missing"]) == ("DIFFERENT", count)
    task = operator(name, max_differences=count - 1)
    with pytest.raises(AirflowException):
        task.execute(TaskTries().next_try(task))


def test_a_retry_compares_again_after_differences_and_keeps_a_match(
    pipelines: Pipelines, missing: tuple[str, int]
) -> None:
    name, _ = missing
    task, tries = operator(name), TaskTries()
    with pytest.raises(AirflowException):
        task.execute(tries.next_try(task))
    load(name)
    matched = task.execute(tries.next_try(task))
    assert matched["status"] == "MATCH"
    assert task.execute(tries.next_try(task)) == matched
    assert len(pipelines.client.get(f"/pipelines/{name}/reconciles").json()["items"]) == 2


def test_a_comparison_that_cannot_be_made_is_not_retried(pipelines: Pipelines) -> None:
    task = operator(pipelines.create(source_query="SELECT id, 1 / length(left(name, 0)) AS broken FROM content.genre"))
    with pytest.raises(AirflowFailException, match="could not be compared"):
        task.execute(TaskTries().next_try(task))
