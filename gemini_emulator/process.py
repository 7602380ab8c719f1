"""The emulator in its own process, for tests and benchmarks.

In one interpreter, the clients would measure the emulator's share of the CPU.
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gemini_emulator.request_log import LogLine, read_log

ROOT = Path(__file__).resolve().parents[1]


class Emulator:
    """Start an emulator, provide its `url` and `log()`, and stop it.

    `scenario` is the name of a ready scenario, a file, or a scenario's content. It replaces
    latency, quotas, timeline and faults. `scale` multiplies all its seconds.

    >>> with Emulator(latency="0.2", faults=[{"fault": "503", "number": "1-5"}]) as gemini:
    ...     provider = GeminiProvider(api_key="test", base_url=gemini.url, model=MODEL)
    """

    def __init__(
        self,
        *,
        scenario: str | Mapping[str, Any] = "",
        scale: float = 1.0,
        latency: str = "",
        latency_map: Mapping[str, float] | None = None,
        faults: Sequence[Mapping[str, Any]] = (),
        timeline: Sequence[str] = (),
        rpm: int = 0,
        tpm: int = 0,
        rpd: int = 0,
        spend_usd: float = 0.0,
        window_s: float = 60.0,
        clock: str = "",
        seed: int | None = None,
        answers: str = "local",
        port: int = 0,
    ) -> None:
        self._settings = {
            "scenario": _document(
                scenario,
                latency=latency,
                clock=clock,
                timeline=[*timeline],
                fault=[dict(rule) for rule in faults],
                quota={
                    "rpm": rpm,
                    "tpm": tpm,
                    "rpd": rpd,
                    "spend_usd": spend_usd,
                    "window_s": window_s,
                },
            ),
            "scale": scale,
            "latency_map": dict(latency_map or {}),
            "seed": seed,
            "answers": answers,
            "port": port,
        }
        self.url = ""
        self._lines: list[LogLine] | None = None

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="emulator-")
        self._log = Path(self._folder.name) / "requests.jsonl"
        path = Path(self._folder.name) / "settings.json"
        path.write_text(json.dumps(self._settings), "utf-8")
        self._connection, self.url = _FORKS.start(path)
        if not self.url:
            self.__exit__(None, None, None)
            raise RuntimeError("the emulator did not start; its error message is on stderr")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The shutdown stops the emulator, which closes its end when its log is complete.
        with self._connection, suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.recv(1)
        self._lines = read_log(self._log)
        self._folder.cleanup()

    def advance_clock(self, seconds: float) -> None:
        """Advance the clock by which the day quota ends."""
        self._control("POST", "/emulator/clock", {"advance_s": seconds})

    def state(self) -> dict[str, Any]:
        """Return the emulator's Pacific time and the usage of the quotas."""
        return self._control("GET", "/emulator/state")

    def _control(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=10)
        try:
            connection.request(method, path, json.dumps(body))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def log(self) -> list[LogLine]:
        """Return all requests so far, in the order in which their replies were sent."""
        return read_log(self._log) if self._lines is None else self._lines


class _Forks:
    """The process that emulators are forked from; each process of the caller has its own.

    `multiprocessing` with its fork server would run the caller's main script in every emulator.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0

    def start(self, settings: Path) -> tuple[socket.socket, str]:
        """Fork an emulator; return the connection to it and its URL: empty if it failed."""
        with self._lock:
            if self._owner != os.getpid():
                self._begin()
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._orders, [str(settings).encode()], [theirs.fileno()])
            # A socket can join two texts. The lock prevents a second order before the answer.
            return ours, ours.recv(200).decode()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gemini_emulator", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end, self._owner)

    def _end(self, owner: int) -> None:
        if owner == os.getpid():
            self._orders.close()
            self._process.wait()


_FORKS = _Forks()


def _document(scenario: str | Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    if isinstance(scenario, Mapping) and scenario:
        return dict(scenario)
    if scenario:
        # Each Django process imports this package, and few start an emulator.
        from gemini_emulator.scenario import load_scenario

        return load_scenario(str(scenario)).model_dump(mode="json")
    latency = parts.pop("latency") or "0"
    return {"title": "custom", "expect": "custom", "latency": latency, **parts}
