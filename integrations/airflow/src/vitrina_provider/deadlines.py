"""Until when to wait: seconds since 1970, because a worker and a triggerer have to mean the same; None is never."""

from __future__ import annotations

import math
import time

Deadline = float | None


def has_passed(deadline: Deadline) -> bool:
    return deadline is not None and time.time() >= deadline


def at_most(seconds: float, deadline: Deadline) -> float:
    """So long a wait, unless the deadline comes before its end."""
    return seconds if deadline is None else max(0.0, min(seconds, deadline - time.time()))


def whole_seconds(seconds: int, deadline: Deadline) -> int:
    """The same in the whole seconds that the API can wait."""
    return math.ceil(at_most(seconds, deadline))
