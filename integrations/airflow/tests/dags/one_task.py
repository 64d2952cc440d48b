"""DAGs of one task each, whose pipeline the test names when it starts them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowException

from vitrina_provider.operators.reconcile import VitrinaReconcileOperator
from vitrina_provider.operators.run_pipeline import VitrinaRunPipelineOperator
from vitrina_provider.sensors.freshness import VitrinaFreshnessSensor

if TYPE_CHECKING:
    from airflow.sdk import Context

PIPELINE = "{{ params.pipeline }}"


class LosesItsFirstTry(VitrinaRunPipelineOperator):
    """The run has succeeded, and then the worker is lost before Airflow knows."""

    def execute(self, context: Context) -> dict[str, Any]:
        result = super().execute(context)
        if context["ti"].try_number == 1:
            raise AirflowException("The worker is lost.")
        return result


def one_task_dag(dag_id: str) -> DAG:
    return DAG(dag_id, schedule=None, start_date=datetime(2026, 1, 1), params={"pipeline": Param("", type="string")})


with one_task_dag("runs_in_worker"):
    VitrinaRunPipelineOperator(task_id="it", pipeline=PIPELINE, deferrable=False)

with one_task_dag("runs_deferred"):
    VitrinaRunPipelineOperator(
        task_id="it", pipeline=PIPELINE, deferrable=True, retries=2, retry_delay=timedelta(seconds=0)
    )

with one_task_dag("runs_with_a_lost_worker"):
    LosesItsFirstTry(task_id="it", pipeline=PIPELINE, deferrable=False, retries=2, retry_delay=timedelta(seconds=0))

with one_task_dag("compares_deferred"):
    VitrinaReconcileOperator(task_id="it", pipeline=PIPELINE, deferrable=True, poll_seconds=0.1)

with one_task_dag("watches_deferred"):
    VitrinaFreshnessSensor(
        task_id="it",
        pipeline=PIPELINE,
        max_age=timedelta(hours=1),
        deferrable=True,
        poke_interval=0.1,
        timeout=timedelta(seconds=2),
    )
