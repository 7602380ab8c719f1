"""The emulator in a process of its own, for tests and benchmarks.

May import `latency`, `requestlog`, `script` and `service`. A process of its own, since clients that
share its interpreter would measure each other.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pipeline.provider.emulator.requestlog import LogLine, read_log

ROOT = Path(__file__).resolve().parents[3]


class Emulator:
    """Start an emulator, give its `url` and its `log()`, and end it.

    >>> with Emulator(latency="0.2", faults=[{"fault": "503", "number": "1-5"}]) as gemini:
    ...     provider = GeminiProvider(api_key="test", base_url=gemini.url, model=MODEL)
    """

    def __init__(
        self,
        *,
        latency: str = "0",
        latency_map: Mapping[str, float] | None = None,
        faults: Sequence[Mapping[str, Any]] = (),
        rpm: int = 0,
        tpm: int = 0,
        rpd: int = 0,
        window_s: float = 60.0,
        seed: int = 1,
        answers: str = "local",
        port: int = 0,
    ) -> None:
        self._settings = {
            "latency": latency,
            "latency_map": dict(latency_map or {}),
            "faults": [dict(rule) for rule in faults],
            "rpm": rpm,
            "tpm": tpm,
            "rpd": rpd,
            "window_s": window_s,
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
            [sys.executable, "-m", "pipeline.provider.emulator", settings],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - narrows for the type checker
        self.url = self._process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            self.__exit__(None, None, None)
            raise RuntimeError("the emulator did not start; its own message is on stderr")
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

    def log(self) -> list[LogLine]:
        """Return what was asked so far, in the order in which the answers left."""
        return read_log(self._log) if self._process.returncode is None else self._lines
