"""An API of Vitrina of the test's own, on the database of the others, which can be stopped and started again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time

import httpx


class OwnApi:
    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._folder = tempfile.TemporaryDirectory(prefix="vitrina-own-api-")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers."""
        settings = {
            "DATABASE_URL": os.environ["VITRINA_TEST_DATABASE_URL"],
            "API_PORT": str(self.port),
            "API_AUTH": "required",
            "LOG_LEVEL": "silent",
        }
        command = [*json.loads(os.environ["VITRINA_TEST_COMMAND"]), "api"]
        self._process = subprocess.Popen(command, cwd=self._folder.name, env={**os.environ, **settings})
        gives_up_at = time.monotonic() + 240
        while not self.answers():
            assert self._process.poll() is None, "The API ended at its start."
            assert time.monotonic() < gives_up_at, "The API did not start."
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health/live").is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """Without a farewell, so that the answer under way is cut off."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(240)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._folder.cleanup()
