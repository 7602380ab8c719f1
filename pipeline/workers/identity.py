"""The name under which a process claims work, unique per start and the same in a worker's horses,
and what it works on.

Imports Django's settings, nothing of the pipeline. Stages and `jobs.py` read `worker_identity`;
only the worker calls `renew_identity`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable

from django.conf import settings

_current: str | None = None
_served: tuple[str, ...] = ()


def worker_identity() -> str:
    """Give this process's name, `<WORKER_ID>-<pid>-<random>`; a forked horse has its worker's."""
    return _current or renew_identity()


def renew_identity() -> str:
    """Take a new name, as each start of a worker must: a pool's children share their parent's."""
    global _current
    _current = f"{settings.WORKER_ID}-{os.getpid()}-{secrets.token_hex(4)}"
    return _current


def serve(queues: Iterable[str]) -> None:
    """Note which queues this process's worker listens to, in its order."""
    global _served
    _served = tuple(queues)


def served_beside(queue: str) -> tuple[str, ...]:
    """Return what this process's worker serves beside this queue; nothing where it is none."""
    return tuple(name for name in _served if name != queue)
