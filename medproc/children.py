"""The processes that the supervisor runs: started, watched, stopped, and found after a kill.

A second process, `leash.py`, ends the children if the supervisor is killed. Each supervisor has a
roster, a file that names its children. So the next start can tell the operator about survivors.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from medproc import leash, private
from medproc.embedded.processes import exclusive, is_free, open_lock, start_of
from medproc.env import PROJECT_ROOT
from medproc.forked import ForkedCommand, HeldCommand, fork_command, hold_command
from medproc.stop_signal import StopSignal
from medproc.timing import scaled

GRACE_MARGIN_S = 15.0
"""Seconds that children get beyond a step's grace, to kill an overdue horse and to exit."""
POLL_S = 0.1
_LEASH = "leash"


class ChildDiedError(Exception):
    """A child that should still run has ended."""


class SurvivorsError(Exception):
    """Processes of a killed start still run; the message is one line."""


@dataclass(frozen=True, kw_only=True)
class Child:
    """A command that runs as a child in its own session; Ctrl-C does not reach it."""

    name: str
    process: ForkedCommand
    log: Path


@dataclass(frozen=True, kw_only=True)
class HeldChild:
    """A child that prepares itself and begins when `Children.release` is called."""

    child: Child
    command: HeldCommand


class Children:
    """The children of this supervisor, in the order of their start."""

    def __init__(self, leash_process: subprocess.Popen[str], roster: int) -> None:
        self.started: list[Child] = []
        self._is_asked = False
        self._leash = leash_process
        self._roster = roster
        self._note(_LEASH, leash_process.pid)

    def start(self, name: str, *arguments: str) -> None:
        """Run `manage.py` with `arguments`; its output goes to a private log."""
        with _log_of(name) as (log, descriptor):
            process = fork_command(*arguments, log=descriptor)
        self._add(Child(name=name, process=process, log=log))

    def release(self, held: HeldChild) -> None:
        """Let a command that `held_child` has forked begin."""
        self._add(held.child)
        held.command.release()

    def raise_if_died(self) -> None:
        """Raise ChildDiedError if a child has ended."""
        for child in self.started:
            code = child.process.poll()
            if code is not None:
                raise ChildDiedError(
                    f"The {child.name} ended with exit code {code}; see {child.log}"
                )

    def ask_to_stop(self) -> None:
        """Ask all children to stop, once: a second request would kill the steps that drain."""
        if self._is_asked:
            return
        self._is_asked = True
        for child in self.started:
            child.process.terminate()

    def stop(self) -> list[str]:
        """Ask all children to stop, kill those that do not, and return lines about the killed."""
        self.ask_to_stop()
        seconds = grace_s()
        deadline = time.monotonic() + seconds
        killed = []
        for child in self.started:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                killed.append(f"{child.name} did not stop within {seconds:.0f} s; killed")
                os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()
        self._tell_leash(leash.RELEASED)
        self._leash.communicate()
        return killed

    def _add(self, child: Child) -> None:
        self.started.append(child)
        self._tell_leash(str(child.process.pid))
        self._note(child.name, child.process.pid)

    def _note(self, name: str, pid: int) -> None:
        entry = {"name": name, "pid": pid, "began": start_of(pid)}
        os.write(self._roster, f"{json.dumps(entry)}\n".encode())

    def _tell_leash(self, line: str) -> None:
        assert self._leash.stdin is not None  # noqa: S101 - narrows the type; it is a pipe
        with suppress(BrokenPipeError):
            self._leash.stdin.write(f"{line}\n")
            self._leash.stdin.flush()


@contextmanager
def held_child(name: str, *arguments: str, prepare: Callable[[], None]) -> Iterator[HeldChild]:
    """Fork `manage.py` with `arguments` before the servers run; the fork calls `prepare` at once.

    A child that was not released ends at the end of this context.
    """
    with _log_of(name) as (log, descriptor):
        command = hold_command(*arguments, log=descriptor, prepare=prepare)
    try:
        yield HeldChild(child=Child(name=name, process=command, log=log), command=command)
    finally:
        # A released child has ended by now: its `Children` have stopped.
        command.terminate()
        command.wait()


@contextmanager
def children() -> Iterator[Children]:
    """Provide an empty list of children; at the end all of them have stopped."""
    roster = _rosters() / f"{os.getpid()}.json"
    with exclusive(_rosters() / "lock"):
        roster.unlink(missing_ok=True)
        # The lock says that this supervisor lives. The kernel releases it at every kind of death.
        lock = open_lock(roster)
        is_free(lock)
    leash_process = subprocess.Popen(
        [sys.executable, "-m", "medproc.leash", str(grace_s())],
        stdin=subprocess.PIPE,
        text=True,
        cwd=PROJECT_ROOT,
        start_new_session=True,
    )
    running = Children(leash_process, lock)
    try:
        yield running
    finally:
        for line in running.stop():
            sys.stderr.write(f"{line}\n")
        roster.unlink(missing_ok=True)
        os.close(lock)


def refuse_beside_survivors(stopping: StopSignal) -> None:
    """Raise SurvivorsError if processes of a killed supervisor run; first let `leash.py` end them.

    Writes one line to standard error before the wait.
    """
    deadline = time.monotonic() + grace_s() + 1
    told = False
    while (found := _survivors()) and not stopping.is_set():
        survivors = {pid: name for pid, name in found.items() if name != _LEASH}
        if not survivors:
            return
        names = ", ".join(f"{name} (process {pid})" for pid, name in survivors.items())
        if len(survivors) == len(found) or time.monotonic() > deadline:
            raise SurvivorsError(
                f"Processes of a killed start still run: {names}; end them with "
                f"`kill {' '.join(map(str, survivors))}`, then start again"
            )
        if not told:
            sys.stderr.write(f"Waiting for the processes of a killed start to end: {names}\n")
            told = True
        stopping.wait(POLL_S)


def grace_s() -> float:
    """Return the seconds that children get between SIGTERM and SIGKILL."""
    return scaled(settings.STOP_GRACE_S) + GRACE_MARGIN_S


@contextmanager
def _log_of(name: str) -> Iterator[tuple[Path, int]]:
    """Provide the private log of a child, and a descriptor that appends to the log."""
    log = private.folder(settings.MEDPROC_DATA_DIR / "logs") / f"{name}.log"
    descriptor = private.append(log)
    try:
        yield log, descriptor
    finally:
        os.close(descriptor)


def _rosters() -> Path:
    """Return the folder of the rosters, which belongs to the user of the supervisors."""
    folder = settings.MEDPROC_DATA_DIR / "running"
    return private.folder(folder, uid=os.geteuid(), gid=os.getegid())


def _survivors() -> dict[int, str]:
    """Return process id and name of living children of dead supervisors."""
    found: dict[int, str] = {}
    with exclusive(_rosters() / "lock"):
        for roster in _rosters().glob("*.json"):
            lock = open_lock(roster)
            try:
                if is_free(lock):
                    living = _living(roster)
                    found |= living
                    if not living:
                        roster.unlink()
            finally:
                os.close(lock)
    return found


def _living(roster: Path) -> dict[int, str]:
    entries = []
    for line in roster.read_text("utf-8").splitlines():
        # A supervisor that was killed while it wrote leaves half a line.
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            entries.append((int(entry["pid"]), str(entry["name"]), str(entry["began"])))
    return {pid: name for pid, name, began in entries if start_of(pid) == began != ""}
