"""Until when to wait: seconds since 1970, the same for a worker and a triggerer; None means for ever."""

from __future__ import annotations

import math
import time

Deadline = float | None


def has_passed(deadline: Deadline) -> bool:
    return deadline is not None and time.time() >= deadline


def at_most(seconds: float, deadline: Deadline) -> float:
    """The given wait, or less if the deadline comes first."""
    return seconds if deadline is None else max(0.0, min(seconds, deadline - time.time()))


def whole_seconds(seconds: int, deadline: Deadline) -> int:
    """The same in the whole seconds that the API can wait."""
    return math.ceil(at_most(seconds, deadline))
