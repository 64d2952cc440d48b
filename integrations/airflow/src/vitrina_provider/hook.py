"""The API of Vitrina for Airflow: for tasks, and with `a…` in front for triggers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx
from airflow.sdk import BaseHook

from vitrina_provider.api_address import ApiAddress, read_connection
from vitrina_provider.patience import Patience
from vitrina_provider.problems import (
    VitrinaApiError,
    VitrinaConnectionError,
    VitrinaError,
    VitrinaUnreachableError,
    problem_in,
)

# The API waits no longer than this for one answer.
LONGEST_WAIT_SECONDS = 60


@dataclass(frozen=True)
class Call:
    """A request. It may be repeated if it changes nothing, or if a key makes sure that it is carried out only once."""

    method: str
    path: str
    query: dict[str, str]
    idempotency_key: str | None = None
    wait_seconds: int = 0
    changes_nothing_twice: bool = False

    @property
    def is_repeatable(self) -> bool:
        return self.method == "GET" or self.idempotency_key is not None or self.changes_nothing_twice

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.idempotency_key is None else {"idempotency-key": self.idempotency_key}


class VitrinaHook(BaseHook):
    """Asks the API. What it answers is given back as it is; what it refuses is raised as VitrinaApiError."""

    conn_name_attr = "vitrina_conn_id"
    default_conn_name = "vitrina_default"
    conn_type = "vitrina"
    hook_name = "Vitrina"

    def __init__(self, vitrina_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.vitrina_conn_id = vitrina_conn_id
        self._address: ApiAddress | None = None

    def get_conn(self) -> ApiAddress:
        """Read once: `on_kill` may come at a moment when Airflow cannot be asked for a connection."""
        if self._address is None:
            self._address = read_connection(self.get_connection(self.vitrina_conn_id))
        return self._address

    async def aget_conn(self) -> ApiAddress:
        if self._address is None:
            self._address = read_connection(await self.aget_connection(self.vitrina_conn_id))
        return self._address

    # What tasks do

    def request_run(self, pipeline: str, idempotency_key: str) -> tuple[dict[str, Any], bool]:
        """The pipeline with the number of the request, and whether this key had asked for it before."""
        return _keyed_answer(self._send(Call("POST", f"{_path(pipeline)}/run", {}, idempotency_key)))

    def request_reconcile(self, pipeline: str, idempotency_key: str) -> tuple[dict[str, Any], bool]:
        """The reconcile that waits or runs, and whether this key had asked for it before."""
        return _keyed_answer(self._send(Call("POST", f"{_path(pipeline)}/reconcile", {}, idempotency_key)))

    def reset_state(self, pipeline: str, idempotency_key: str) -> None:
        """The next run reads everything. Needs the role admin."""
        self._send(Call("POST", f"{_path(pipeline)}/state/reset", {"confirm": "true"}, idempotency_key))

    def request_pause(self, pipeline: str) -> None:
        self._send(_pause_call(pipeline))

    def run_status(self, pipeline: str, run_request: int | None = None, wait_seconds: int = 0) -> dict[str, Any]:
        return _object(self._send(_status_call(pipeline, run_request, wait_seconds)))

    def reconcile(self, pipeline: str, reconcile_id: str) -> dict[str, Any]:
        return _object(self._send(_reconcile_call(pipeline, reconcile_id)))

    def last_success(self, pipeline: str) -> tuple[dict[str, Any], timedelta] | None:
        """The last run that succeeded, and how long ago that was by the API's clock."""
        return _last_success_in(self._send(_last_success_call(pipeline)))

    def test_connection(self) -> tuple[bool, str]:
        """Makes a request that needs a valid key, without repeating it: a person is waiting at the form."""
        try:
            outcome = self._try(Call("GET", "/pipelines", {"limit": "1"}))
        except VitrinaConnectionError as error:
            return False, str(error)
        if isinstance(outcome, httpx.Response):
            return True, f"Vitrina answers at {self.get_conn().base_url}."
        return False, str(outcome)

    # What triggers do

    async def arequest_pause(self, pipeline: str) -> None:
        await self._asend(_pause_call(pipeline))

    async def arun_status(self, pipeline: str, run_request: int, wait_seconds: int = 0) -> dict[str, Any]:
        return _object(await self._asend(_status_call(pipeline, run_request, wait_seconds)))

    async def areconcile(self, pipeline: str, reconcile_id: str) -> dict[str, Any]:
        return _object(await self._asend(_reconcile_call(pipeline, reconcile_id)))

    async def alast_success(self, pipeline: str) -> tuple[dict[str, Any], timedelta] | None:
        return _last_success_in(await self._asend(_last_success_call(pipeline)))

    # How a request is sent

    def _send(self, call: Call) -> httpx.Response:
        patience = Patience(self.get_conn().patience_seconds)
        while True:
            outcome = self._try(call)
            if isinstance(outcome, httpx.Response):
                return outcome
            time.sleep(self._delay_or_raise(call, outcome, patience))

    async def _asend(self, call: Call) -> httpx.Response:
        patience = Patience((await self.aget_conn()).patience_seconds)
        while True:
            outcome = await self._atry(call)
            if isinstance(outcome, httpx.Response):
                return outcome
            await asyncio.sleep(self._delay_or_raise(call, outcome, patience))

    def _try(self, call: Call) -> httpx.Response | VitrinaError:
        # A client for each request: `on_kill` interrupts one request to send another.
        try:
            with httpx.Client(**self._client_options(call)) as client:
                response = client.request(call.method, call.path, params=call.query, headers=call.headers)
        except httpx.TransportError as error:
            return VitrinaUnreachableError(self.get_conn().base_url, error)
        return problem_in(response) or response

    async def _atry(self, call: Call) -> httpx.Response | VitrinaError:
        try:
            async with httpx.AsyncClient(**self._client_options(call)) as client:
                response = await client.request(call.method, call.path, params=call.query, headers=call.headers)
        except httpx.TransportError as error:
            return VitrinaUnreachableError(self.get_conn().base_url, error)
        return problem_in(response) or response

    def _delay_or_raise(self, call: Call, trouble: VitrinaError, patience: Patience) -> float:
        delay = patience.delay_after(trouble) if call.is_repeatable else None
        if delay is None:
            raise trouble
        self.log.warning("%s Trying again in %.1f s.", trouble, delay)
        return delay

    def _client_options(self, call: Call) -> dict[str, Any]:
        address = self.get_conn()
        return {
            "base_url": address.base_url,
            "headers": address.headers,
            "verify": address.tls,
            "timeout": httpx.Timeout(address.timeout_seconds, read=address.timeout_seconds + call.wait_seconds),
        }


def _path(pipeline: str) -> str:
    return f"/pipelines/{quote(pipeline, safe='')}"


def _status_call(pipeline: str, run_request: int | None, wait_seconds: int) -> Call:
    query = {"wait": f"{wait_seconds}s"}
    if run_request is not None:
        query["run_request"] = str(run_request)
    return Call("GET", f"{_path(pipeline)}/status", query, wait_seconds=wait_seconds)


def _pause_call(pipeline: str) -> Call:
    return Call("POST", f"{_path(pipeline)}/pause", {}, changes_nothing_twice=True)


def _reconcile_call(pipeline: str, reconcile_id: str) -> Call:
    return Call("GET", f"{_path(pipeline)}/reconciles/{quote(reconcile_id, safe='')}", {})


def _last_success_call(pipeline: str) -> Call:
    return Call("GET", f"{_path(pipeline)}/runs", {"kind": "load", "status": "SUCCESS", "limit": "1"})


def _last_success_in(response: httpx.Response) -> tuple[dict[str, Any], timedelta] | None:
    runs = response.json()["items"]
    if not runs:
        return None
    now = parsedate_to_datetime(response.headers["date"])
    return runs[0], now - datetime.fromisoformat(runs[0]["finished_at"].replace("Z", "+00:00"))


def _keyed_answer(response: httpx.Response) -> tuple[dict[str, Any], bool]:
    return _object(response), "idempotency-replayed" in response.headers


def _object(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    if not isinstance(body, dict):
        raise VitrinaApiError(response.status_code, {"detail": "The API answered with something else than an object."})
    return body
