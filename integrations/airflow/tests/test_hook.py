"""The connection and the hook, on the real API."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import Connection
from conftest import API, CONNECTION

from vitrina_provider.api_address import read_connection
from vitrina_provider.hook import VitrinaHook
from vitrina_provider.patience import Patience
from vitrina_provider.problems import VitrinaApiError, VitrinaUnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Pipelines, Printed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_connection_is_tested_with_its_key() -> None:
    assert VitrinaHook().test_connection() == (True, f"Vitrina answers at {API}.")


def test_a_wrong_key_is_told_and_not_shown(connect: Callable[..., str], printed: Printed) -> None:
    hook = VitrinaHook(connect(password="vk_not_the_key"))
    is_fine, message = hook.test_connection()
    assert not is_fine
    assert message.endswith("[UNAUTHENTICATED]")
    told = message + printed.text() + repr(hook.get_conn())
    assert "vk_not_the_key" not in told


def test_nobody_there_is_told_at_once_to_whom_tests_the_connection(connect: Callable[..., str]) -> None:
    is_fine, message = VitrinaHook(connect(port=free_port())).test_connection()
    assert not is_fine
    assert "does not answer" in message


def test_a_refusal_says_what_is_wrong_and_what_to_do() -> None:
    with pytest.raises(VitrinaApiError) as refused:
        VitrinaHook().run_status("no_such_pipeline")
    assert refused.value.code == "PIPELINE_NOT_FOUND"
    assert "no_such_pipeline" in str(refused.value)
    assert "GET /api/v1/pipelines lists them" in str(refused.value)
    assert not refused.value.may_pass


def test_a_name_cannot_lead_to_another_path() -> None:
    with pytest.raises(VitrinaApiError) as refused:
        VitrinaHook().run_status("../keys?x=")
    assert refused.value.code == "PIPELINE_NOT_FOUND"


def test_too_low_a_role_is_told(pipelines: Pipelines) -> None:
    with pytest.raises(VitrinaApiError) as refused:
        VitrinaHook().reset_state(pipelines.create(), "some-key")
    assert refused.value.status == 403


def test_the_same_key_asks_for_one_run_only(pipelines: Pipelines) -> None:
    name, hook = pipelines.create(), VitrinaHook()
    first, was_asked_first = hook.request_run(name, "key-of-one-run" + name)
    hook.run_status(name, first["run_request"], wait_seconds=30)
    second, was_asked_second = hook.request_run(name, "key-of-one-run" + name)
    assert (was_asked_first, was_asked_second) == (False, True)
    assert first["run_request"] == second["run_request"]
    assert len(pipelines.runs(name)) == 1


def test_patience_ends_and_then_the_cause_is_told(connect: Callable[..., str]) -> None:
    hook = VitrinaHook(connect(port=free_port(), extra={"patience_seconds": 1}))
    with pytest.raises(VitrinaUnreachableError, match="does not answer"):
        hook.run_status("film_dim_full")


class OverloadedOnce(threading.Thread):
    """A proxy in front of Vitrina that is overloaded once, and then passes everything on. Speaks HTTP by hand."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.refused = 0

    def run(self) -> None:
        for number in range(2):
            client, _ = self.listener.accept()
            with client:
                request = client.recv(65536)
                if number == 0:
                    self.refused += 1
                    client.sendall(b"HTTP/1.1 503 Overloaded\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy")
                    continue
                with socket.create_connection((CONNECTION["host"], CONNECTION["port"])) as vitrina:
                    vitrina.sendall(request.replace(b"connection: keep-alive", b"connection: close"))
                    while chunk := vitrina.recv(65536):
                        client.sendall(chunk)
        self.listener.close()


def test_an_overloaded_proxy_is_asked_again(connect: Callable[..., str]) -> None:
    proxy = OverloadedOnce()
    proxy.start()
    status = VitrinaHook(connect(port=proxy.port)).run_status("film_dim_full")
    assert status["name"] == "film_dim_full"
    assert proxy.refused == 1


def test_what_cannot_pass_and_what_takes_too_long_is_not_repeated() -> None:
    gone = VitrinaApiError(404, {"code": "PIPELINE_NOT_FOUND"})
    busy = VitrinaApiError(503, {}, retry_after_seconds=5)
    assert Patience(60).delay_after(gone) is None
    assert Patience(60).delay_after(busy) == 5
    assert Patience(4).delay_after(busy) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"schema": "ftp"}, "must be http or https"),
        ({"host": "example.com/api"}, "without a path"),
        ({"extra": {"ca_file": "/no/such/file"}}, "cannot be read"),
        ({"extra": {"timeout_seconds": "soon"}}, "must be a number of seconds"),
    ],
)
def test_a_wrong_connection_is_told_by_its_field(
    connect: Callable[..., str], changes: dict[str, Any], sentence: str
) -> None:
    is_fine, message = VitrinaHook(connect(**changes)).test_connection()
    assert not is_fine
    assert sentence in message


def test_certificates_are_checked_and_a_ca_file_is_used() -> None:
    plain = read_connection(Connection(conn_id="c", conn_type="vitrina", host="etl.example.com", schema="https"))
    assert plain.base_url == "https://etl.example.com:443/api/v1"
    authorities = ssl.get_default_verify_paths().cafile
    extra = f'{{"ca_file": "{authorities}"}}'
    own = read_connection(Connection(conn_id="c", conn_type="vitrina", host="::1", schema="https", extra=extra))
    assert own.base_url == "https://[::1]:443/api/v1"
    for tls in (plain.tls, own.tls):
        assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)
