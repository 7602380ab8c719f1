"""Real worker commands for tests: start, watch, signal and end them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from django.db import connection

from medproc.env import PROJECT_ROOT

PATIENCE_S = 180.0
"""How long a test waits before it fails; only a machine under heavy load needs minutes."""
SHORT_WAIT_S = 1.0
FIRST_PAUSE_S, LATER_PAUSE_S = 0.01, 0.03
"""Between two looks: a look costs a query, and a long wait must not take the machine's time."""
T = TypeVar("T")


def until(condition: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Wait until `condition()` is true and give its value; fail after `patience_s` seconds."""
    began = time.monotonic()
    while not (value := condition()):
        waited_s = time.monotonic() - began
        assert waited_s < patience_s, f"waited in vain for {patience_s:.0f} s"
        # Other processes cause the change, and they need the machine between two looks.
        time.sleep(FIRST_PAUSE_S if waited_s < SHORT_WAIT_S else LATER_PAUSE_S)
    return value


def lasting(seconds: float) -> None:
    """Let a fault last for `seconds`: the test is about this length, so there is no condition."""
    time.sleep(seconds)


def is_alive(pid: int) -> bool:
    """Return whether the process exists, also as a zombie."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def children(pid: int) -> list[int]:
    """Return the children of a process, oldest first."""
    with suppress(FileNotFoundError, ProcessLookupError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(c) for task in tasks for c in (task / "children").read_text().split()]
    return []


@dataclass(frozen=True)
class WorkerCommand:
    """A worker command in its own process, with the reports of its steps."""

    folder: Path

    @property
    def pid(self) -> int:
        """Process id of the command: a worker or a pool."""
        return int(until(lambda: self._noted("pid")))

    def finish(self) -> int:
        """Wait for the end of the command and give its exit code."""
        return int(until(lambda: self._noted("exit")))

    def send(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal to the command unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send one signal and give the exit code."""
        self.send(number)
        return self.finish()

    def seen(self, event: str) -> list[dict[str, Any]]:
        """Return the reports of this kind, oldest first."""
        report = self.folder / "seen.jsonl"
        if not report.exists():
            return []
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until `count` reports of this kind exist, and give them."""
        until(lambda: len(self.seen(event)) >= count)
        return self.seen(event)

    def printed(self) -> str:
        """Return the output of the command and its children."""
        log = self.folder / "log.txt"
        return log.read_text() if log.exists() else ""

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return bool(self._noted("exit"))

    def horses(self) -> list[int]:
        """Return the running horses of the pool's workers."""
        return [horse for worker in children(self.pid) for horse in children(worker)]

    def kill(self) -> None:
        """Kill the command and its horses, if they still run."""
        if not self.has_ended:
            self.stop(signal.SIGKILL)
        for began in self.seen("began"):
            with suppress(ProcessLookupError):
                os.kill(began["pid"], signal.SIGKILL)

    def _noted(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""


class WorkerFixture:
    """Starts worker commands by forking from one process in which Django is set up.

    The steps are those of `tests.support.jobs` unless an entry point is given.
    """

    def __init__(self, *entry_point: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.support.worker_process", *entry_point],
            cwd=PROJECT_ROOT,
            stdin=subprocess.PIPE,
            text=True,
        )

    def start(
        self,
        folder: Path,
        does: str,
        *arguments: str,
        grace_s: float = 600.0,
        parent_queries: bool = False,
        file_bytes: int | None = None,
        pool: bool = False,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> WorkerCommand:
        """Start a command whose steps behave as `jobs.BEHAVIOURS[does]`.

        `file_bytes` limits the size of files that its processes write, as a full disk does. `pool`
        puts Django's connection pool into the settings of the command.
        """
        order = {
            "folder": str(folder),
            "does": does,
            "arguments": arguments,
            "grace_s": grace_s,
            "database": connection.settings_dict["NAME"],
            "parent_queries": parent_queries,
            "file_bytes": file_bytes,
            "pool": pool,
            "settings": dict(settings or {}),
            "environment": dict(environment or {}),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return WorkerCommand(folder)

    def close(self) -> None:
        """End the process; the caller ends the commands that it started."""
        self._process.communicate()
