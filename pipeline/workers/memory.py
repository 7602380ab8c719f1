"""The memory of a worker, of its running step, and of the host, as a worker reports them to Redis.

Figures are in KiB and come from Linux: `/proc`, and the limit of the container. On other systems
nothing is reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
_CGROUP = Path("/sys/fs/cgroup")
FIELDS = ("worker_kib", "step_kib", "peak_kib", "total_kib", "free_kib")
"""The names under which a worker's entry in Redis holds the figures of `report`."""


def report(worker: int, horse: int | None, peak_kib: int) -> dict[str, int]:
    """Return the figures of a worker's process, its step and its host; empty if unknown.

    `peak_kib` is the largest step that the worker has seen. A step is the horse with its children.
    """
    host = host_kib()
    own = rss_kib(worker)
    if host is None or own is None:
        return {}
    step = sum(rss_kib(pid) or 0 for pid in _tree(horse)) if horse else 0
    return dict(zip(FIELDS, (own, step, max(peak_kib, step), *host), strict=True))


def rss_kib(pid: int) -> int | None:
    """Return the resident memory of a process; None if it has ended or if the system hides it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE_KIB
    except (OSError, IndexError, ValueError):
        return None


def host_kib() -> tuple[int, int] | None:
    """Return the memory of the host and its available part; in a container, of the container."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        of_host = {
            name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)
        }
        total, free = of_host["MemTotal"], of_host["MemAvailable"]
    except (OSError, KeyError, ValueError):
        return None
    with suppress(OSError, ValueError):
        # The limit of a container reads "max" where there is none.
        limit = int((_CGROUP / "memory.max").read_text("ascii")) // 1024
        used = int((_CGROUP / "memory.current").read_text("ascii")) // 1024
        total, free = min(total, limit), min(free, max(0, limit - used))
    return total, free


def _tree(root: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield root
    with suppress(OSError, ValueError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text("ascii").split():
                yield from _tree(int(child))
