"""A really running Vitrina for every test: `npm run test:airflow` starts it and says in the environment where it is."""

from __future__ import annotations

import json
import os
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from own_api import OwnApi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONNECTION: dict[str, Any] = json.loads(os.environ["AIRFLOW_CONN_VITRINA_DEFAULT"])
API = f"http://{CONNECTION['host']}:{CONNECTION['port']}/api/v1"

# Fifty thousand rows, two by two: long enough to be met while it runs, on any machine.
SLOW = {"source_query": "SELECT id, film_id, rating FROM ugc.ratings", "target_key": ["id"], "batch_size": 2}


def until(what: str, condition: Callable[[], Any], seconds: float = 240) -> Any:
    """Waits for a condition, never for a time."""
    gives_up_at = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < gives_up_at, f"It did not happen: {what}."
        time.sleep(0.05)
    return found


class Pipelines:
    """The pipelines of a test, made and looked at as an admin."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._names: list[str] = []

    def create(self, **configuration: Any) -> str:
        name = configuration.get("name", f"t_{uuid.uuid4().hex[:12]}")
        defaults = {
            "name": name,
            "source_query": "SELECT id, name FROM content.genre",
            "target_table": f"analytics.{name}",
            "target_key": ["id"],
            "create_target": True,
        }
        response = self.client.post("/pipelines", json={**defaults, **configuration})
        assert response.status_code == 201, response.text
        self._names.append(name)
        return name

    def patch(self, name: str, **changes: Any) -> None:
        response = self.client.patch(f"/pipelines/{name}", json=changes)
        assert response.status_code == 200, response.text

    def post(self, name: str, action: str) -> None:
        response = self.client.post(f"/pipelines/{name}/{action}")
        assert response.is_success, response.text

    def status(self, name: str) -> str:
        return str(self.client.get(f"/pipelines/{name}/status").json()["status"])

    def runs(self, name: str) -> list[dict[str, Any]]:
        """The loads, the oldest first."""
        return list(reversed(self.client.get(f"/pipelines/{name}/runs", params={"kind": "load"}).json()["items"]))

    def until_it_writes(self, name: str) -> None:
        def writes() -> bool:
            return any(run["status"] == "RUNNING" and run["rows_read"] > 0 for run in self.runs(name))

        until(f"{name} writes", writes)

    def until_status(self, name: str, status: str) -> None:
        until(f"{name} is {status}", lambda: self.status(name) == status)

    def remove_all(self) -> None:
        while self._names:
            name = self._names.pop()
            if self.status(name) in ("RUN_REQUESTED", "RUNNING"):
                self.patch(name, enabled=True)
                until(f"{name} can be paused", partial(self._is_pausing, name))
            until(f"{name} is at rest", partial(self._is_at_rest, name))
            assert self.client.delete(f"/pipelines/{name}").status_code == 204

    def _is_at_rest(self, name: str) -> bool:
        return self.status(name) in ("IDLE", "PAUSED", "FAILED")

    def _is_pausing(self, name: str) -> bool:
        return self.client.post(f"/pipelines/{name}/pause").is_success or self._is_at_rest(name)


@pytest.fixture
def pipelines() -> Iterator[Pipelines]:
    headers = {"authorization": f"Bearer {os.environ['VITRINA_TEST_ADMIN_KEY']}"}
    with httpx.Client(base_url=API, headers=headers, timeout=30) as client:
        made = Pipelines(client)
        yield made
        made.remove_all()


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A connection that differs from the usual one; its id is given back."""

    def make(**changes: Any) -> str:
        conn_id = f"vitrina_{uuid.uuid4().hex[:8]}"
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps({**CONNECTION, **changes}))
        return conn_id

    return make


@pytest.fixture
def own_api() -> Iterator[OwnApi]:
    api = OwnApi()
    api.start()
    yield api
    api.remove()


class Printed:
    """All that was printed so far, the log of Airflow included."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self._text = ""

    def text(self) -> str:
        out, err = self._capture.readouterr()
        self._text += out + err
        return self._text


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)
