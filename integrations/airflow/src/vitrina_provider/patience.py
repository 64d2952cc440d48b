"""How often, and after which waits, a request is repeated while the API is away or busy."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vitrina_provider.problems import VitrinaError

_FIRST_DELAY_SECONDS = 0.25
_LONGEST_DELAY_SECONDS = 10.0


class Patience:
    """For one request. Limited by time, not by a number of tries: how long a restart of the API takes is not known."""

    def __init__(self, seconds: float) -> None:
        self._gives_up_at = time.monotonic() + seconds
        self._delay = _FIRST_DELAY_SECONDS

    def delay_after(self, trouble: VitrinaError) -> float | None:
        """Seconds until the next try; None when there is none."""
        # Spread out, so that a hundred tasks do not come back at the same moment.
        delay = trouble.retry_after_seconds or self._delay * random.uniform(0.5, 1.0)  # noqa: S311
        self._delay = min(self._delay * 2, _LONGEST_DELAY_SECONDS)
        if not trouble.may_pass or time.monotonic() + delay > self._gives_up_at:
            return None
        return delay
