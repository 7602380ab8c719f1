"""The worker's name and its queues, as this process and its forked horses know them.

A worker claims jobs under this name, which is new at each start. Only the worker calls
`renew_identity` and `serve`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable

from django.conf import settings

_current: str | None = None
_served: tuple[str, ...] = ()


def worker_identity() -> str:
    """Return this process's name, `<WORKER_ID>-<pid>-<random>`; a horse has its worker's name."""
    return _current or renew_identity()


def renew_identity() -> str:
    """Take a new name; each worker must do so at its start, because a pool's children fork."""
    global _current
    _current = f"{settings.WORKER_ID}-{os.getpid()}-{secrets.token_hex(4)}"
    return _current


def serve(queues: Iterable[str]) -> None:
    """Store the queues that this process's worker listens to, in their order."""
    global _served
    _served = tuple(queues)


def served_beside(queue: str) -> tuple[str, ...]:
    """Return the other queues of this process's worker; empty if the process is no worker."""
    return tuple(name for name in _served if name != queue)


def served_before(queue: str) -> tuple[str, ...] | None:
    """Return the queues that the worker of this process prefers to `queue`.

    None if the worker does not serve `queue`, or if the process is no worker.
    """
    return _served[: _served.index(queue)] if queue in _served else None
