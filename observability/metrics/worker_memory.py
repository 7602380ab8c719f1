"""The memory of the workers of each host, with advice for an operator (requirement 14).

This module is pure: it turns the figures of the workers' entries in Redis into sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.core.labels import counted
from pipeline.workers.memory import FIELDS

STEP_KIB = 150 * 1024
"""Memory of a step that no worker has measured yet; requirement 12 says 100 to 150 MB."""
RESERVE_SHARE = 0.1
"""Part of the host's memory that stays free for the system."""


@dataclass(frozen=True, kw_only=True)
class WorkerMemory:
    """The memory of one worker and its host, in KiB."""

    worker_kib: int
    """The resident memory (RSS) of the worker's process."""
    step_kib: int
    """The RSS of the running step with its children; 0 without a step."""
    peak_kib: int
    """The largest step of this worker; 0 before its first step."""
    total_kib: int
    free_kib: int

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> WorkerMemory | None:
        """Return the figures in a worker's entry; None if the worker reports none."""
        figures = [facts.get(name, "") for name in FIELDS]
        if not all(figure.isascii() and figure.isdigit() for figure in figures):
            return None
        return cls(**dict(zip(FIELDS, map(int, figures), strict=True)))

    def __str__(self) -> str:
        step = f", step {megabytes(self.step_kib)}" if self.step_kib else ""
        peak = f", largest step {megabytes(self.peak_kib)}" if self.peak_kib else ""
        return f"RSS {megabytes(self.worker_kib)}{step}{peak}"


@dataclass(frozen=True, kw_only=True)
class HostMemory:
    """The memory of a host with workers."""

    host: str
    workers: int
    used_kib: int
    """The RSS of all workers and their steps."""
    total_kib: int
    free_kib: int
    needed_kib: int
    """The memory that the present workers can still need, if each runs its largest step."""
    step_kib: int
    """The largest step of the host's workers."""

    @property
    def room(self) -> int:
        """The number of further workers for which the host has memory; below 0: too many."""
        spare = self.free_kib - self.needed_kib - int(self.total_kib * RESERVE_SHARE)
        per_worker = self.step_kib + self.used_kib // self.workers
        return spare // per_worker

    @property
    def is_short(self) -> bool:
        """Whether the present workers can exhaust the host's memory."""
        return self.free_kib < self.needed_kib + int(self.total_kib * RESERVE_SHARE)

    @property
    def words(self) -> str:
        """Return the use of the host: `worker-1: 4 workers use 412 MB; 900 MB of 2.0 GB free`."""
        verb = "use" if self.workers != 1 else "uses"
        return (
            f"{self.host}: {counted(self.workers, 'worker')} {verb} {megabytes(self.used_kib)};"
            f" {megabytes(self.free_kib)} of {megabytes(self.total_kib)} free"
        )

    @property
    def advice(self) -> str:
        """Return what an operator should do."""
        if self.is_short:
            return (
                f"Steps can need {megabytes(self.needed_kib)} more. Lower WORKER_CONCURRENCY or"
                " PAGES_CONCURRENCY on this host, or add memory."
            )
        if self.room:
            return f"Memory for {counted(self.room, 'more worker')}."
        return "Memory for the present workers; add memory before you add workers."


def hosts(workers: Iterable[tuple[str, WorkerMemory]]) -> list[HostMemory]:
    """Return the hosts of these live workers, the shortest of memory first."""
    by_host: defaultdict[str, list[WorkerMemory]] = defaultdict(list)
    for host, memory in workers:
        by_host[host].append(memory)
    found = [_host(host, of_host) for host, of_host in by_host.items()]
    return sorted(found, key=lambda each: (not each.is_short, each.host))


def _host(host: str, workers: list[WorkerMemory]) -> HostMemory:
    largest = max(each.peak_kib for each in workers) or STEP_KIB
    return HostMemory(
        host=host,
        workers=len(workers),
        used_kib=sum(each.worker_kib + each.step_kib for each in workers),
        total_kib=min(each.total_kib for each in workers),
        free_kib=min(each.free_kib for each in workers),
        needed_kib=sum(max(0, largest - each.step_kib) for each in workers),
        step_kib=largest,
    )


def megabytes(kib: int) -> str:
    """Return `412 MB` or `2.0 GB`."""
    mb = kib / 1024
    return f"{mb / 1024:.1f} GB" if mb >= 1000 else f"{mb:.0f} MB"
