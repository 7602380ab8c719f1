"""The emulator in its own process, for tests and benchmarks.

In one interpreter, the clients would measure the emulator's share of the CPU.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gemini_emulator.request_log import LogLine, read_log
from gemini_emulator.scenario import load_scenario

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

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="emulator-")
        self._log = Path(self._folder.name) / "requests.jsonl"
        settings = json.dumps({**self._settings, "log": str(self._log)})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gemini_emulator", settings],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - narrows for the type checker
        self.url = self._process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            self.__exit__(None, None, None)
            raise RuntimeError("the emulator did not start; its error message is on stderr")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.communicate()
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
        return read_log(self._log) if self._process.returncode is None else self._lines


def _document(scenario: str | Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    if isinstance(scenario, Mapping) and scenario:
        return dict(scenario)
    if scenario:
        return load_scenario(str(scenario)).model_dump(mode="json")
    latency = parts.pop("latency") or "0"
    return {"title": "custom", "expect": "custom", "latency": latency, **parts}
