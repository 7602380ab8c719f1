"""One child process under watch: started clean, held to its deadlines, its death explained.

The module starts no thread and never forks the caller's memory.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast

from . import ipc, refusals
from .types import InputRefused, ReaderError, ReaderLimits

_PROJECT = Path(__file__).resolve().parents[3]
#: Seconds that a child may take to start on a busy host, before its first deadline begins.
_START_SECONDS = 10.0
#: Signals by which native libraries end after failed allocations: PDFium traps, C++ aborts.
_OUT_OF_MEMORY = {signal.SIGABRT, signal.SIGTRAP, signal.SIGILL}
#: Signals from elsewhere: the host's out-of-memory killer, an operator.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM}
#: Number of periods granted while the child had less than half of the time as processor time: a
#: busy host is not the file's fault.
_PATIENCE = 3
#: The parent's environment holds keys, so a parser of hostile files inherits only these variables.
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")
_TICKS = os.sysconf("SC_CLK_TCK")


class KilledFromOutsideError(Exception):
    """The child was killed from outside, which says little about the file."""


def _environment() -> dict[str, str]:
    """Return the variables that the child needs for its libraries, and one thread for Tesseract."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    paths = [str(_PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_THREAD_LIMIT": "1",
        "LC_ALL": "C.UTF-8",
    }


class WatchedChild:
    """A running child. `messages` yields its messages; `end` kills and reaps it."""

    def __init__(self, path: Path, limits: ReaderLimits, question: Mapping[str, Any]) -> None:
        #: The page (1-based) that the child works on; 0 while it opens the file.
        self.page = 0
        self._first = int(question.get("first", 0))
        self._limits = limits
        self._buffer = bytearray()
        self._timed_out = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.documents.reader.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
        request = {**question, "path": str(path), "limits": asdict(limits), "parent": os.getpid()}
        stdin = cast("IO[bytes]", self._process.stdin)
        with suppress(BrokenPipeError):
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        with suppress(BrokenPipeError):
            stdin.close()

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield (kind, body) until the child is done.

        Raises the error that its refusal or death means.
        """
        seconds = self._limits.seconds_to_open + _START_SECONDS
        while True:
            line = self._line(seconds)
            if line is None:
                raise self._cause_of_death(seconds)
            kind, body = ipc.decode(line)
            if kind == "done":
                return
            if kind == "refused":
                raise InputRefused(*body)
            if kind == "fault":
                message = f"The reader's child failed with {body}."
                raise ReaderError(message)
            self.page = body["number"] + 1 if kind == "page" else self._first
            seconds = self._limits.seconds_per_page
            yield kind, body

    def end(self) -> None:
        """Kill the child if it still runs, and reap it."""
        if self._process.poll() is None:
            self._process.kill()
        cast("IO[bytes]", self._process.stdout).close()
        self._process.wait()

    def _line(self, seconds: float) -> bytes | None:
        """Return the child's next line; None if the child died or was too slow."""
        stdout = cast("IO[bytes]", self._process.stdout)
        deadline, granted = time.monotonic() + seconds, 1
        before = self._processor_seconds()
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    starved = self._processor_seconds() - before < 0.5 * seconds
                    if starved and granted < _PATIENCE:
                        deadline, granted = time.monotonic() + seconds, granted + 1
                        continue
                    self._timed_out = True
                    return None
                chunk = os.read(stdout.fileno(), 1 << 20)
                if not chunk:
                    return None
                self._buffer += chunk
                if len(self._buffer) > ipc.MAX_MESSAGE_BYTES:
                    self._timed_out = True
                    return None
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line

    def _processor_seconds(self) -> float:
        """Return the child's processor time; the wall clock if the system does not report it."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii")
            user, system = stat.rpartition(")")[2].split()[11:13]
        except (OSError, ValueError):
            return time.monotonic()
        return (int(user) + int(system)) / _TICKS

    def _cause_of_death(self, seconds: float) -> Exception:
        """Return the error that the child's end means for the file."""
        if self._timed_out:
            # Popen.kill polls first: it would reap a child that has just died, and lose its
            # resource usage.
            os.kill(self._process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = code = os.waitstatus_to_exitcode(status)
        if self._timed_out or code == -signal.SIGXCPU:
            return refusals.too_slow(self.page, seconds)
        if code >= 0:
            return ReaderError(f"The reader's child left with status {code}.")
        if -code in _FROM_OUTSIDE:
            return KilledFromOutsideError()
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if -code in _OUT_OF_MEMORY or peak > 0.7 * self._limits.memory_bytes:
            return refusals.too_much_memory(self.page, self._limits.memory_bytes)
        return refusals.page_crashed(self.page)
