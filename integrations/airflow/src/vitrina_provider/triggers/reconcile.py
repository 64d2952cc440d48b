"""Waits for the end of a reconcile, outside of any worker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vitrina_provider.deadlines import at_most
from vitrina_provider.reconciles import is_over
from vitrina_provider.triggers.base import VitrinaTrigger

if TYPE_CHECKING:
    from vitrina_provider.deadlines import Deadline


class VitrinaReconcileTrigger(VitrinaTrigger):
    def __init__(
        self,
        *,
        vitrina_conn_id: str,
        deadline: Deadline,
        pipeline_id: str,
        reconcile_id: str,
        poll_seconds: float,
    ) -> None:
        super().__init__(
            vitrina_conn_id=vitrina_conn_id,
            deadline=deadline,
            pipeline_id=pipeline_id,
            reconcile_id=reconcile_id,
            poll_seconds=poll_seconds,
        )
        self.pipeline_id = pipeline_id
        self.reconcile_id = reconcile_id
        self.poll_seconds = poll_seconds

    async def has_ended(self) -> bool:
        if is_over(await self.hook.areconcile(self.pipeline_id, self.reconcile_id)):
            return True
        await asyncio.sleep(at_most(self.poll_seconds, self.deadline))
        return False
