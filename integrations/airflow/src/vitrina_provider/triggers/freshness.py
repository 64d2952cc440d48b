"""Waits until a pipeline has succeeded recently, outside of any worker."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from vitrina_provider.deadlines import at_most
from vitrina_provider.triggers.base import VitrinaTrigger

if TYPE_CHECKING:
    from vitrina_provider.deadlines import Deadline


class VitrinaFreshnessTrigger(VitrinaTrigger):
    def __init__(
        self,
        *,
        vitrina_conn_id: str,
        deadline: Deadline,
        pipeline: str,
        max_age_seconds: float,
        poll_seconds: float,
    ) -> None:
        super().__init__(
            vitrina_conn_id=vitrina_conn_id,
            deadline=deadline,
            pipeline=pipeline,
            max_age_seconds=max_age_seconds,
            poll_seconds=poll_seconds,
        )
        self.pipeline = pipeline
        self.max_age = timedelta(seconds=max_age_seconds)
        self.poll_seconds = poll_seconds

    async def has_ended(self) -> bool:
        found = await self.hook.alast_success(self.pipeline)
        if found is not None and found[1] <= self.max_age:
            return True
        await asyncio.sleep(at_most(self.poll_seconds, self.deadline))
        return False
