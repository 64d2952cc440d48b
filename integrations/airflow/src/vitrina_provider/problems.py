"""What can go wrong between Airflow and Vitrina, and which of it is temporary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    import httpx

# Codes of failed runs whose cause may be temporary: `retry`, `wait` and `reconnect` in Vitrina's table of errors.
# Vitrina has already repeated such a run itself; Airflow may do so again, later. A test compares the two tables.
PASSING_CODES = frozenset(
    {
        "DATABASE_BUSY",
        "DATABASE_UNAVAILABLE",
        "DISK_FULL",
        "INDEX_INCOMPLETE",
        "INTERNAL",
        "PREVIEW_BUSY",
        "SEARCH_BUSY",
        "SEARCH_UNAVAILABLE",
        "TARGET_CHANGED",
        "TASK_RETRY_LATER",
        "TASK_WORKER_LOST",
        "TOO_MANY_CONNECTIONS",
    }
)


class VitrinaError(Exception):
    """What a request to Vitrina can end in. The text is for a person: what is wrong, and what to do."""

    # True when the same request may succeed a little later, without anybody doing anything.
    may_pass: bool = False
    retry_after_seconds: float | None = None


class VitrinaConnectionError(VitrinaError):
    """The connection of Airflow cannot be used as it is."""


class VitrinaApiError(VitrinaError):
    """The API refused a request."""

    def __init__(self, status: int, problem: dict[str, Any], retry_after_seconds: float | None = None) -> None:
        self.status = status
        self.code = str(problem.get("code", f"HTTP_{status}"))
        self.retry_after_seconds = retry_after_seconds
        self.may_pass = status >= 500 or status in (408, 429) or self.code == "IDEMPOTENCY_KEY_IN_USE"
        sentences = [problem.get("detail") or f"The API answered with status {status}.", problem.get("hint")]
        sentences += [f"{error['pointer']}: {error['message']}" for error in problem.get("errors", [])]
        super().__init__(f"{' '.join(filter(None, sentences))} [{self.code}]")


class VitrinaUnreachableError(VitrinaError):
    """No answer came at all."""

    may_pass = True

    def __init__(self, base_url: str, cause: httpx.TransportError) -> None:
        reason = str(cause) or type(cause).__name__
        hint = "Check that it runs, and that host, port and schema of the connection are right."
        super().__init__(f"The API of Vitrina at {base_url} does not answer: {reason}. {hint}")


def problem_in(response: httpx.Response) -> VitrinaApiError | None:
    """The problem in an answer, even if it comes from a proxy and not from Vitrina."""
    if response.is_success:
        return None
    try:
        body = response.json()
    except ValueError:
        body = {}
    retry_after = response.headers.get("retry-after", "")
    seconds = float(retry_after) if retry_after.isdigit() else None
    return VitrinaApiError(response.status_code, body if isinstance(body, dict) else {}, seconds)


def task_failure(message: str, *, may_pass: bool) -> AirflowException:
    """Airflow retries a task only where that can help: AirflowFailException ends it even if retries are left."""
    return AirflowException(message) if may_pass else AirflowFailException(message)
