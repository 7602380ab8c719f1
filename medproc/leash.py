"""`python -m medproc.leash GRACE_S`: ends the supervisor's children if the supervisor is killed.

Standard input is a pipe from the supervisor, one process id per line. An end without the line
`released` means that the supervisor died. A pipe works on every system, and without any help of the
children.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from medproc.embedded.processes import start_of, wait_for

RELEASED = "released"


def main() -> None:
    """Read process ids until the pipe ends; then end these processes, gently at first."""
    grace_s = float(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    children: dict[int, str] = {}
    for line in sys.stdin:
        if line.strip() == RELEASED:
            return
        pid = int(line)
        children[pid] = start_of(pid)
    _send(children, signal.SIGTERM)
    wait_for(lambda: not _living(children), seconds=grace_s)
    _send(children, signal.SIGKILL)


def _living(children: dict[int, str]) -> list[int]:
    """Return the children that still run. The system may have given an id to another program."""
    return [pid for pid, began in children.items() if began and start_of(pid) == began]


def _send(children: dict[int, str], number: signal.Signals) -> None:
    for pid in _living(children):
        with suppress(OSError):
            os.kill(pid, number)


if __name__ == "__main__":
    main()
