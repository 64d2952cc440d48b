"""What the triggers have in common: they watch until the task should continue, and decide nothing themselves."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from vitrina_provider.deadlines import has_passed
from vitrina_provider.hook import VitrinaHook
from vitrina_provider.problems import VitrinaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from vitrina_provider.deadlines import Deadline


class VitrinaTrigger(BaseTrigger):
    """
    Fires when what it watches has ended, when the deadline has passed, or when the API fails.

    In each case the task asks the API itself and judges the answer, so that a task ends in the same way whether it
    waited here or in its worker.
    """

    def __init__(self, *, vitrina_conn_id: str, deadline: Deadline, **arguments: Any) -> None:
        super().__init__()
        self.vitrina_conn_id = vitrina_conn_id
        self.deadline = deadline
        self._arguments = arguments
        self.hook = VitrinaHook(vitrina_conn_id)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        cls = type(self)
        common = {"vitrina_conn_id": self.vitrina_conn_id, "deadline": self.deadline}
        return f"{cls.__module__}.{cls.__qualname__}", {**common, **self._arguments}

    @abc.abstractmethod
    async def has_ended(self) -> bool:
        """Checks, and waits a while if it has not ended yet, but not beyond the deadline."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            while not await self.has_ended() and not has_passed(self.deadline):
                pass
        except VitrinaError as error:
            self.log.warning("%s", error)
        # The event says what was waited for, so the task needs to remember nothing.
        yield TriggerEvent(self.serialize()[1])
