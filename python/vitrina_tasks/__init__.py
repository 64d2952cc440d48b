"""Write a task of a Vitrina pipeline in Python: rows in, rows out.

    from vitrina_tasks import task

    @task(name="shout", description="Titles in capitals.")
    def shout(rows, params):
        for row in rows:
            yield {**row, "title": row["title"].upper()}
"""

import sys

# Checked here, in syntax that every Python 3 accepts: the other modules would only fail to parse.
if sys.version_info < (3, 10):
    raise SystemExit("Vitrina's tasks need Python 3.10 or newer; this is Python %d.%d." % sys.version_info[:2])

from .problems import RetryLater  # noqa: E402
from .registry import task  # noqa: E402

__all__ = ["RetryLater", "task"]
