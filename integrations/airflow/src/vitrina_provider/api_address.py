"""How the API is reached: the connection of Airflow, read once and checked."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from vitrina_provider.problems import VitrinaConnectionError

if TYPE_CHECKING:
    from airflow.sdk import Connection

DEFAULT_TIMEOUT_SECONDS = 30.0
DEFAULT_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class ApiAddress:
    base_url: str
    # Kept out of repr, so that no log and no traceback shows it.
    api_key: str | None = field(repr=False)
    tls: ssl.SSLContext = field(repr=False)
    timeout_seconds: float
    patience_seconds: float

    @property
    def headers(self) -> dict[str, str]:
        login = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        return {"accept": "application/json", "user-agent": "airflow-provider-vitrina", **login}


def read_connection(connection: Connection) -> ApiAddress:
    """Raises VitrinaConnectionError with a sentence about the field that is wrong."""
    extra = connection.extra_dejson
    scheme = (connection.schema or "http").lower()
    if scheme not in ("http", "https"):
        raise VitrinaConnectionError(f"The schema of {connection.conn_id} must be http or https, not {scheme}.")
    host = connection.host or "127.0.0.1"
    if "/" in host:
        raise VitrinaConnectionError(f"The host of {connection.conn_id} is a name or an address, without a path.")
    port = connection.port or (443 if scheme == "https" else 8000)
    return ApiAddress(
        base_url=f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/api/v1",
        api_key=connection.password or None,
        tls=_tls_by(extra.get("ca_file")),
        timeout_seconds=_seconds(extra, "timeout_seconds", DEFAULT_TIMEOUT_SECONDS),
        patience_seconds=_seconds(extra, "patience_seconds", DEFAULT_PATIENCE_SECONDS),
    )


def _tls_by(ca_file: str | None) -> ssl.SSLContext:
    """There is no way to switch the check off: a key must not be sent to whoever answers."""
    try:
        return ssl.create_default_context(cafile=ca_file) if ca_file else httpx.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        raise VitrinaConnectionError(f"The CA file {ca_file} cannot be read: {error}.") from error


def _seconds(extra: dict[str, Any], name: str, default: float) -> float:
    value = extra.get(name)
    if value in (None, ""):
        return default
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if seconds < 0:
        raise VitrinaConnectionError(f"{name} in the extra of the connection must be a number of seconds.")
    return seconds
