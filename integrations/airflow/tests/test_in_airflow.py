"""Whole DAGs as Airflow itself runs them: its task runner, its supervisor, its trigger code, its database."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import clear_task_instances
from airflow.models.xcom import XComModel
from airflow.providers_manager import ProvidersManager
from airflow.utils.session import create_session
from conftest import CONNECTION, SLOW

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from conftest import Pipelines

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(HERE / "dags", bundle_path=HERE / "dags", bundle_name="dags-folder")
    assert bag.import_errors == {}
    return bag.dags


def run_dag(dag: DAG, pipeline: str) -> tuple[str, int, Any]:
    """The end of its only task, the number of its tries, and what it left in XCom."""
    run: DagRun = dag.test(run_conf={"pipeline": pipeline})
    task = run.get_task_instance("it")
    assert task is not None
    with create_session() as session:
        left = XComModel.get_many(run_id=run.run_id, dag_ids=dag.dag_id, task_ids="it", key="return_value")
        values = [XComModel.deserialize_value(row) for row in session.execute(left).scalars()]
    return str(task.state), task.try_number, values[0] if values else None


@pytest.mark.parametrize("dag_id", ["runs_in_worker", "runs_deferred"])
def test_r11_4_a_dag_runs_a_pipeline_and_leaves_its_counts_in_xcom(
    dags: dict[str, DAG], pipelines: Pipelines, dag_id: str
) -> None:
    name = pipelines.create()
    state, _, result = run_dag(dags[dag_id], name)
    assert state == "success"
    (run,) = pipelines.runs(name)
    assert result == {
        "pipeline": name,
        "run_id": run["id"],
        "run_request": 1,
        "rows_read": 26,
        "rows_written": 26,
        "rows_unchanged": 0,
        "rows_deduplicated": 0,
        "rows_rejected": 0,
        "rows_dropped": 0,
        "rows_added": 0,
        "rows_deleted": 0,
        "batches": 1,
    }


def test_a_failure_that_cannot_pass_is_not_retried(dags: dict[str, DAG], pipelines: Pipelines) -> None:
    name = pipelines.create(source_query="SELECT id, 1 / length(left(name, 0)) AS broken FROM content.genre")
    state, tries, _ = run_dag(dags["runs_deferred"], name)
    assert (state, tries) == ("failed", 1)
    assert [run["status"] for run in pipelines.runs(name)] == ["FAILED"]


def test_a_retry_by_airflow_starts_no_second_run(dags: dict[str, DAG], pipelines: Pipelines) -> None:
    name = pipelines.create()
    state, tries, result = run_dag(dags["runs_with_a_lost_worker"], name)
    assert (state, tries) == ("success", 2)
    assert [run["id"] for run in pipelines.runs(name)] == [result["run_id"]]


def test_airflow_raises_max_tries_when_a_task_is_cleared(dags: dict[str, DAG], pipelines: Pipelines) -> None:
    """By that a cleared task is told from a retried one."""
    run: DagRun = dags["runs_deferred"].test(run_conf={"pipeline": pipelines.create()})
    with create_session() as session:
        task = run.get_task_instance("it", session=session)
        assert task is not None
        assert (task.try_number, task.max_tries) == (1, 2)
        clear_task_instances([task], session)
        assert task.max_tries == 3


def test_airflow_kills_a_task_and_its_run_is_paused(pipelines: Pipelines) -> None:
    name = pipelines.create(**SLOW)
    command = ["airflow", "dags", "test", "runs_in_worker", "--conf", json.dumps({"pipeline": name})]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        try:
            pipelines.until_it_writes(name)
            worker.terminate()
            pipelines.until_status(name, "PAUSED")
        finally:
            worker.kill()
    (run,) = pipelines.runs(name)
    assert run["status"] == "PAUSED"


def test_a_deferred_comparison_and_a_deferred_sensor_end_well(dags: dict[str, DAG], pipelines: Pipelines) -> None:
    name = pipelines.create()
    assert run_dag(dags["runs_in_worker"], name)[0] == "success"
    state, _, result = run_dag(dags["compares_deferred"], name)
    assert state == "success"
    assert (result["status"], result["missing"], result["extra"], result["different"]) == ("MATCH", 0, 0, 0)
    state, _, result = run_dag(dags["watches_deferred"], name)
    assert state == "success"
    assert result["run_id"] == pipelines.runs(name)[0]["id"]


def test_a_deferred_sensor_gives_up_after_its_timeout(dags: dict[str, DAG], pipelines: Pipelines) -> None:
    assert run_dag(dags["watches_deferred"], pipelines.create())[0] == "failed"


def airflow(*arguments: str, **environment: str) -> tuple[int, str]:
    """The exit code of a command of Airflow, and all that it printed."""
    done = subprocess.run(
        ["airflow", *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("with_search", [False, True])
def test_r12_the_example_dag_builds_the_marts_of_the_demo(pipelines: Pipelines, with_search: bool) -> None:
    if with_search:
        # Airflow does not see where a pipeline writes to, so tables stand in for the indexes.
        for index in ("film_dim_es", "film_rating_agg_es"):
            pipelines.create(name=index)
    # Not of film_dim, which follows its source and reads nothing while nothing changes.
    before = len(pipelines.runs("film_rating_agg_full"))
    conf, folder = json.dumps({"search": with_search}), str(HERE.parent / "example_dags")
    code, printed = airflow("dags", "test", "cinema_marts", "--conf", conf, AIRFLOW__CORE__DAGS_FOLDER=folder)
    assert code == 0, printed
    after = pipelines.runs("film_rating_agg_full")
    assert len(after) == before + 1
    assert (after[-1]["status"], after[-1]["rows_read"]) == ("SUCCESS", 900)
    with create_session() as session:
        run = session.query(DagRun).filter_by(dag_id="cinema_marts").order_by(DagRun.id.desc()).first()
        assert run is not None
        states = {task.task_id: str(task.state) for task in run.get_task_instances(session=session)}
    indexes = "success" if with_search else "skipped"
    assert states == {
        "film_dim": "success",
        "film_rating_agg": "success",
        "compare_film_dim": "success",
        "compare_film_rating_agg": "success",
        "with_search": "success",
        "film_dim_es": indexes,
        "film_rating_agg_es": indexes,
        "genre_dim_is_fresh": "success",
    }


def test_airflow_knows_the_provider_and_the_form_of_its_connection() -> None:
    manager = ProvidersManager()
    assert "airflow-provider-vitrina" in manager.providers
    assert manager.hooks["vitrina"] is not None
    behaviour = manager.field_behaviours["vitrina"]
    assert behaviour["relabeling"]["password"] == "API key"
    fields = {name for name in manager.connection_form_widgets if name.startswith("extra__vitrina__")}
    assert fields == {f"extra__vitrina__{name}" for name in ("ca_file", "timeout_seconds", "patience_seconds")}


def test_airflow_tests_the_connection() -> None:
    assert "Connection success" in airflow("connections", "test", "vitrina_default")[1]


def test_airflow_says_that_a_key_is_wrong_and_does_not_show_it() -> None:
    wrong = json.dumps({**CONNECTION, "password": "vk_wrong"})
    printed = airflow("connections", "test", "vitrina_wrong", AIRFLOW_CONN_VITRINA_WRONG=wrong)[1]
    assert "[UNAUTHENTICATED]" in printed
    assert "vk_wrong" not in printed
