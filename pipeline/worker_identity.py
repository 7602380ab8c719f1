"""The name under which a process claims work: unique per start, the same in a worker's horses.

Imports Django's settings, nothing of the pipeline. Stages and `jobs.py` read `worker_identity`;
only the worker calls `renew_identity`.
"""

from __future__ import annotations

import os
import secrets

from django.conf import settings

_current: str | None = None


def worker_identity() -> str:
    """Give this process's name, `<WORKER_ID>-<pid>-<random>`; a forked horse has its worker's."""
    return _current or renew_identity()


def renew_identity() -> str:
    """Take a new name, as each start of a worker must: a pool's children share their parent's."""
    global _current
    _current = f"{settings.WORKER_ID}-{os.getpid()}-{secrets.token_hex(4)}"
    return _current
