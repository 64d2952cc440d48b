"""
The marts of the cinema demo, once an hour: the tables, their search indexes, and a check that they are right.

The search indexes exist only where Vitrina has a search cluster; start the DAG with {"search": true} to build them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.sdk import Param, dag, task

from vitrina_provider.operators.reconcile import VitrinaReconcileOperator
from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator
from vitrina_provider.sensors.freshness import VitrinaFreshnessSensor


@dag(
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"search": Param(False, type="boolean", description="Build the search indexes, too.")},
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
    doc_md=__doc__,
)
def cinema_marts() -> None:
    film_dim = VitrinaRunPipelineOperator(
        task_id="film_dim",
        pipeline="film_dim_full",
        timeout=timedelta(minutes=30),
        deferrable=True,
    )
    film_rating_agg = VitrinaRunPipelineOperator(task_id="film_rating_agg", pipeline="film_rating_agg_full")

    compared = [
        VitrinaReconcileOperator(task_id=f"compare_{mart}", pipeline=f"{mart}_full", deferrable=True)
        for mart in ("film_dim", "film_rating_agg")
    ]

    @task.short_circuit
    def with_search(params: dict[str, bool]) -> bool:
        return params["search"]

    indexes = [
        VitrinaRunPipelineOperator(task_id=index, pipeline=index, when_killed="detach")
        for index in ("film_dim_es", "film_rating_agg_es")
    ]

    # Not run here, but the marts are only useful together.
    genre_dim_is_fresh = VitrinaFreshnessSensor(
        task_id="genre_dim_is_fresh",
        pipeline="genre_dim_full",
        max_age=timedelta(days=1),
        mode="reschedule",
        poke_interval=timedelta(minutes=5),
        timeout=timedelta(hours=1),
    )

    film_dim >> film_rating_agg >> compared
    film_rating_agg >> with_search() >> indexes
    film_rating_agg >> genre_dim_is_fresh


cinema_marts()
