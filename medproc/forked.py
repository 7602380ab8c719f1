"""A management command in a fork of this process, which has loaded Django already.

A new interpreter would need two seconds of CPU to load the same modules. Only a process with one
thread forks here.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from django.db import connections

from medproc.env import PROJECT_ROOT

_LOOK_S = 0.05
_STOPS = (signal.SIGINT, signal.SIGTERM)
_FIRST_OTHER = 3
"""The first descriptor after standard input, output and error."""


class ForkedCommand:
    """A running command, with the methods of `subprocess.Popen` that the supervisor calls."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, -N after signal N, or None while the command runs."""
        if self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        ends_at = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if timeout is not None and ends_at is not None and time.monotonic() >= ends_at:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_LOOK_S)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the command to end."""
        self.send_signal(signal.SIGTERM)


class HeldCommand(ForkedCommand):
    """A command that has forked and prepares itself, but begins only after `release`.

    The command ends if the parent dies first.
    """

    def __init__(self, pid: int, gate: int) -> None:
        super().__init__(pid)
        self._gate = gate

    def release(self) -> None:
        """Let the command begin."""
        # A command that has ended is found by `poll`.
        with suppress(BrokenPipeError):
            os.write(self._gate, b"1")
        os.close(self._gate)


def fork_command(*arguments: str, log: int | None = None) -> ForkedCommand:
    """Run `manage.py` with `arguments` in a fork; first close the connections to PostgreSQL.

    With `log`, a descriptor, the command has a session of its own, no input, and writes to the log.
    """
    return ForkedCommand(_fork(arguments, log, None, None))


def hold_command(*arguments: str, log: int, prepare: Callable[[], None]) -> HeldCommand:
    """Fork as `fork_command` does; the fork calls `prepare` at once, and begins when released.

    So the work of `prepare` takes no time of the parent, which starts the servers meanwhile.
    """
    waits_at, gate = os.pipe()
    try:
        return HeldCommand(_fork(arguments, log, prepare, waits_at), gate)
    finally:
        os.close(waits_at)


def _fork(
    arguments: tuple[str, ...],
    log: int | None,
    prepare: Callable[[], None] | None,
    waits_at: int | None,
) -> int:
    """Fork, and return the process id of the command."""
    connections.close_all()
    sys.stdout.flush()
    sys.stderr.flush()
    # A signal that comes at once must not meet the handlers of the parent.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _run(arguments, log, mask, prepare, waits_at)
        finally:
            # The fork must never reach the code of its parent, which stops the servers at its end.
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pid


def _run(
    arguments: tuple[str, ...],
    log: int | None,
    mask: Collection[int],
    prepare: Callable[[], None] | None,
    waits_at: int | None,
) -> int:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if log is not None:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
            os.dup2(log, 1)
            os.dup2(log, 2)
        _let_go(besides=waits_at)
        if prepare is not None:
            prepare()
        if waits_at is not None and not os.read(waits_at, 1):
            # The parent has ended without a release.
            return 0
        sys.argv = [str(PROJECT_ROOT / "manage.py"), *arguments]
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - a fork prints and ends as an interpreter does
        traceback.print_exc()
        return 1
    finally:
        # The reader of the output can be gone.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
    return 0


def _let_go(besides: int | None) -> None:
    """Let go of the parent's locks and pipes: the kernel must release them when the parent dies.

    Only the descriptor `besides` stays open. The numbers stay in use, because objects of the
    parent may still close them.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
        if number >= _FIRST_OTHER and number not in (nothing, besides):
            # The descriptor of the listing itself is closed by now.
            with suppress(OSError):
                os.fstat(number)
                os.dup2(nothing, number, inheritable=False)
    os.close(nothing)
