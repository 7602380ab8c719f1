"""Start servers that outlive this process, and recognize them by their recorded process id.

A server started as another user does not need access to our interpreter. A server is never our
child, so no parent must reap it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from medproc.embedded.errors import NO_ROOM, EmbeddedError, no_room
from medproc.unprivileged import ServerUser

# The shell starts the server in the background and ends, so init reaps the server. The arguments
# are positional: the shell never parses a path.
_DETACH = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
_ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}
POLL_S = 0.02


def run(arguments: Sequence[str | Path], *, user: ServerUser, cwd: Path) -> str:
    """Run a program as `user` and return its output. Raises EmbeddedError if the program fails."""
    result = _run([str(part) for part in arguments], user=user, cwd=cwd)
    if result.returncode != 0:
        output = result.stderr + result.stdout
        if NO_ROOM in output:
            raise no_room(cwd)
        raise EmbeddedError(f"{Path(arguments[0]).name} failed: {_telling_line(output)}")
    return result.stdout


def detach(arguments: Sequence[str | Path], *, user: ServerUser, cwd: Path, log: Path) -> int:
    """Start a server as `user` in its own session; return its process id."""
    shell = ["/bin/sh", "-c", _DETACH, "sh", str(log), *map(str, arguments)]
    result = _run(shell, user=user, cwd=cwd, new_session=True)
    if result.returncode != 0 or not result.stdout.strip():
        if NO_ROOM in result.stderr:
            raise no_room(log)
        raise EmbeddedError(f"{Path(arguments[0]).name} cannot be started: {result.stderr.strip()}")
    return int(result.stdout)


def refusal(name: str, log: Path, written: int) -> EmbeddedError:
    """Return the error of a server that did not start, from its lines in `log` after `written`."""
    try:
        with log.open("rb") as file:
            file.seek(written)
            said = file.read().decode("utf-8", "replace")
    except OSError:
        said = ""
    return no_room(log) if NO_ROOM in said else EmbeddedError(f"{name} did not start; see {log}")


def size(log: Path) -> int:
    """Return the bytes of `log`; 0 if the file does not exist."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def can_run(program: Path, *, user: ServerUser) -> bool:
    """Return whether `user` can execute `program` (by asking for its version)."""
    try:
        result = _run([str(program), "--version"], user=user, cwd=Path("/"))
    except OSError:
        return False
    return result.returncode == 0


def command_line(pid: int) -> tuple[str, ...]:
    """Return the arguments of a live process; () if it is dead, a zombie or invisible."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        if Path("/proc/self/cmdline").exists():
            return ()
        result = subprocess.run(
            ["ps", "-ww", "-o", "command=", "-p", str(pid)],  # noqa: S607 - macOS has no /proc
            capture_output=True,
            text=True,
            check=False,
        )
        return tuple(result.stdout.split())
    return tuple(part.decode("utf-8", "surrogateescape") for part in raw.split(b"\0") if part)


def start_of(pid: int) -> str:
    """Return when a live process began; "" if it is dead, a zombie or invisible.

    With the number of the process, the time names the process also after the process has become
    another program, and no later process has both.
    """
    try:
        # The name of the program, in brackets, can hold spaces and brackets.
        state, *fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(") ")[2].split()
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
        result = subprocess.run(
            ["ps", "-o", "lstart=", "-p", str(pid)],  # noqa: S607 - macOS has no /proc
            capture_output=True,
            text=True,
            check=False,
        )
        return result.stdout.strip()
    # proc_pid_stat(5): field 3 is the state, field 22 the clock ticks since the machine's start.
    return "" if state in "ZX" else fields[18]


def wait_for(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Poll `condition`; return whether it became true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def stop(pid: int, number: signal.Signals, *, seconds: float) -> bool:
    """Send a signal to a process and wait for its end; return whether it has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    return wait_for(lambda: not command_line(pid), seconds=seconds)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the file lock at `path`. The kernel releases the lock if this process dies."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """Open the lock file at `path`, which only its owner can open; return the descriptor.

    Raises PermissionError for a file of another user: that user could hold the lock forever.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(f"{path} belongs to another user")
    os.fchmod(descriptor, 0o600)
    return descriptor


def is_free(descriptor: int) -> bool:
    """Return whether no other process holds the lock of `descriptor`; then take the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(descriptor: int) -> None:
    """Hold the lock of `descriptor` together with other processes that share it."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def _telling_line(output: str) -> str:
    """Return the line that names the cause: the first error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line for line in lines if "error:" in line or "FATAL:" in line]
    return (causes or lines[-1:] or ["it gave no reason"])[0]


def _run(
    arguments: Sequence[str], *, user: ServerUser, cwd: Path, new_session: bool = False
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=cwd,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=new_session,
        umask=0o077,
        user=user.uid if user.changes else None,
        group=user.gid if user.changes else None,
        extra_groups=() if user.changes else None,
    )
