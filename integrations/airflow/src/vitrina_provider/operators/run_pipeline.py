"""Runs a pipeline and waits for its end."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from vitrina_provider.deadlines import has_passed, whole_seconds
from vitrina_provider.hook import LONGEST_WAIT_SECONDS
from vitrina_provider.links import VitrinaRunLink
from vitrina_provider.operators.base import VitrinaOperator, failing_the_task
from vitrina_provider.problems import VitrinaApiError, VitrinaError, task_failure
from vitrina_provider.runs import has_ended_badly, is_stuck, result_of
from vitrina_provider.task_key import task_key
from vitrina_provider.triggers.run import VitrinaRunTrigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

    from vitrina_provider.deadlines import Deadline

Answer = TypeVar("Answer")


class VitrinaRunPipelineOperator(VitrinaOperator):
    """
    Runs a Vitrina pipeline and waits until the run has ended, across all its attempts and runners.

    A retried task keeps waiting for the run that it has already requested, or takes its success; only when that run
    has failed does it ask for another one. XCom gets the id of the run and its counts of rows.

    :param full: forget the position first, so that everything is read again; needs a key of the role admin
    :param when_killed: `pause` stops the run after its batch, `detach` lets it continue; also when `timeout` is over
    :param fail_fast: do not let Airflow retry what a retry cannot fix, such as a wrong query
    :param wait_seconds: how long one request waits for the end, 1 to 60
    """

    operator_extra_links = (VitrinaRunLink(),)

    def __init__(
        self,
        *,
        full: bool = False,
        when_killed: Literal["pause", "detach"] = "pause",
        fail_fast: bool = True,
        wait_seconds: int = 30,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if when_killed not in ("pause", "detach"):
            raise ValueError(f"when_killed must be pause or detach, not {when_killed!r}.")
        if not 1 <= wait_seconds <= LONGEST_WAIT_SECONDS:
            raise ValueError(f"wait_seconds must be 1 to {LONGEST_WAIT_SECONDS}, not {wait_seconds}.")
        self.full = full
        self.when_killed = when_killed
        self.fail_fast = fail_fast
        self.wait_seconds = wait_seconds
        self.followed: tuple[str, int] | None = None
        self._is_killed = False

    def execute(self, context: Context) -> dict[str, Any]:
        deadline = self.deadline_from_now()
        with failing_the_task():
            pipeline_id, run_request = self._request_run(task_key(context, "run", self.pipeline), deadline)
            return self._follow(pipeline_id, run_request, deadline)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """The trigger only says that it is time to check: what it saw may be minutes old."""
        del context
        with failing_the_task():
            return self._follow(event["pipeline_id"], event["run_request"], event["deadline"])

    def on_kill(self) -> None:
        self._is_killed = True
        if self.followed is not None:
            self._leave(*self.followed)

    @property
    def link_to_runs(self) -> str:
        """Every attempt of the request that was followed; empty if nothing was requested."""
        if self.followed is None:
            return ""
        pipeline_id, run_request = self.followed
        return f"{self.hook.get_conn().base_url}/pipelines/{pipeline_id}/runs?run_request={run_request}"

    def _request_run(self, key: str, deadline: Deadline) -> tuple[str, int]:
        if self.full:
            # With the same key in every try: a retry must not reset what it continues.
            self._when_at_rest(partial(self.hook.reset_state, self.pipeline, f"{key}-reset"), deadline)
        for number in itertools.count():
            ask = partial(self.hook.request_run, self.pipeline, f"{key}-{number}")
            pipeline, was_asked = self._when_at_rest(ask, deadline)
            pipeline_id, run_request = pipeline["id"], pipeline["run_request"]
            self.followed = (pipeline_id, run_request)
            if not was_asked:
                self.log.info("Asked Vitrina to run %s: request %d.", pipeline["name"], run_request)
                break
            if not has_ended_badly(self.hook.run_status(pipeline_id, run_request)):
                self.log.info("An earlier try has asked to run %s: request %d.", pipeline["name"], run_request)
                break
        return pipeline_id, run_request

    def _when_at_rest(self, ask: Callable[[], Answer], deadline: Deadline) -> Answer:
        """A pause or a restore in progress, or for `full` another run, must end before the request is accepted."""
        while True:
            try:
                return ask()
            except VitrinaApiError as error:
                if error.code != "STATUS_CONFLICT" or self._is_killed or has_passed(deadline):
                    raise
                self.log.info("%s Waiting until it is at rest.", error)
                self.hook.run_status(self.pipeline, wait_seconds=whole_seconds(self.wait_seconds, deadline))

    def _follow(self, pipeline_id: str, run_request: int, deadline: Deadline) -> dict[str, Any]:
        self.followed = (pipeline_id, run_request)
        wait_seconds = 0
        while True:
            status = self.hook.run_status(pipeline_id, run_request, wait_seconds)
            if self._is_killed:
                # Again, because the kill may have come before there was anything to leave.
                self._leave(pipeline_id, run_request)
                raise task_failure(f"The task that ran {status['name']} was killed.", may_pass=True)
            if status["over"]:
                return result_of(status, fail_fast=self.fail_fast)
            self._tell_progress(status)
            if is_stuck(status):
                message = (
                    f"{status['name']} was disabled before a runner took it. Set enabled to true and clear the task."
                )
                raise task_failure(message, may_pass=False)
            if has_passed(deadline):
                self._leave(pipeline_id, run_request)
                raise task_failure(f"{status['name']} has not ended within {self.timeout}.", may_pass=True)
            if self.deferrable:
                self._defer(pipeline_id, run_request, deadline)
            wait_seconds = whole_seconds(self.wait_seconds, deadline)

    def _defer(self, pipeline_id: str, run_request: int, deadline: Deadline) -> NoReturn:
        trigger = VitrinaRunTrigger(
            vitrina_conn_id=self.vitrina_conn_id,
            deadline=deadline,
            pipeline_id=pipeline_id,
            run_request=run_request,
            wait_seconds=self.wait_seconds,
            pauses_when_killed=self.when_killed == "pause",
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def _leave(self, pipeline_id: str, run_request: int) -> None:
        """Never fails: the task ends anyway, and the last line of its log should say why."""
        if self.when_killed == "detach":
            self.log.info("Request %d goes on in Vitrina.", run_request)
            return
        try:
            if not self.hook.run_status(pipeline_id, run_request)["over"]:
                self.hook.request_pause(pipeline_id)
                self.log.info("Asked Vitrina to pause; a later run continues after the last batch.")
        except VitrinaError as error:
            self.log.warning("The run was not paused, and goes on: %s", error)

    def _tell_progress(self, status: dict[str, Any]) -> None:
        run = status["last_run"]
        if run is None or status["status"] == "RUN_REQUESTED":
            self.log.info("%s waits for a runner.", status["name"])
        else:
            self.log.info("%s: %d rows read, %d written.", status["name"], run["rows_read"], run["rows_written"])
