"""Waits for the end of a run, outside of any worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitrina_provider.deadlines import whole_seconds
from vitrina_provider.problems import VitrinaError
from vitrina_provider.runs import is_stuck
from vitrina_provider.triggers.base import VitrinaTrigger

if TYPE_CHECKING:
    from vitrina_provider.deadlines import Deadline


class VitrinaRunTrigger(VitrinaTrigger):
    """The API itself waits (`status?wait=…`), so the end is noticed at once with few requests."""

    def __init__(
        self,
        *,
        vitrina_conn_id: str,
        deadline: Deadline,
        pipeline_id: str,
        run_request: int,
        wait_seconds: int,
        pauses_when_killed: bool,
    ) -> None:
        super().__init__(
            vitrina_conn_id=vitrina_conn_id,
            deadline=deadline,
            pipeline_id=pipeline_id,
            run_request=run_request,
            wait_seconds=wait_seconds,
            pauses_when_killed=pauses_when_killed,
        )
        self.pipeline_id = pipeline_id
        self.run_request = run_request
        self.wait_seconds = wait_seconds
        self.pauses_when_killed = pauses_when_killed

    async def has_ended(self) -> bool:
        wait_seconds = whole_seconds(self.wait_seconds, self.deadline)
        status = await self.hook.arun_status(self.pipeline_id, self.run_request, wait_seconds)
        return bool(status["over"]) or is_stuck(status)

    async def on_kill(self) -> None:
        """Called when a person ends the deferred task, and not when a triggerer is restarted."""
        if not self.pauses_when_killed:
            return
        try:
            status = await self.hook.arun_status(self.pipeline_id, self.run_request)
            if not status["over"]:
                await self.hook.arequest_pause(self.pipeline_id)
        except VitrinaError as error:
            self.log.warning("The run was not paused, and goes on: %s", error)
