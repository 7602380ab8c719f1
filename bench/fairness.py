"""Ten small records arrive while three records of 3,000 pages run: preemption against first-come.

Run `python -m bench.fairness`. Claims, ends of steps and preemptions are real, on its own
PostgreSQL. The provider is simulated: running steps share its quota, and time is scaled. Exits 1 if
small records wait longer than a quarter of first-come, or large records take more than 1.2 times.
"""

from __future__ import annotations

import argparse
import heapq
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")

import django
from django.core.management import call_command

from medproc.embedded import throw_away_servers

if TYPE_CHECKING:
    from pipeline.transitions import Lease

WORKERS = 3
CONCURRENCY = 30
LATENCY_S = 8.0
CALLS_PER_S = 125 / 60
"""A million input tokens per minute at 8,000 tokens per call."""
TICK_S = 0.5
PASSES = ("pass1", "pass05")
"""Later passes first."""
CALLS = {2: {"pass05": 60, "pass1": 500}, 0: {"pass05": 1, "pass1": 8}}
"""Calls of a record of 3,000 pages, and of a record of five pages with eight encounters."""
LARGE, SMALL = 3, 10
MAX_SMALL, MAX_LARGE = 0.25, 1.2


@dataclass
class Shop:
    """The shared state of the workers: wake-ups, the quota, and progress by record."""

    calls: dict[UUID, dict[str, float]]
    wakes: list[tuple[int, int, str]] = field(default_factory=list)
    ends: dict[UUID, float] = field(default_factory=dict)
    preempted: int = 0
    running: int = 0
    sequence: int = 0
    lock: threading.Condition = field(default_factory=threading.Condition)

    def wake(self, step: str) -> None:
        with self.lock:
            self.sequence += 1
            heapq.heappush(self.wakes, (PASSES.index(step), self.sequence, step))
            self.lock.notify()

    def pop(self) -> str | None:
        with self.lock:
            while not self.wakes:
                if len(self.ends) == len(self.calls):
                    return None
                self.lock.wait(0.05)
            return heapq.heappop(self.wakes)[2]


def work(shop: Shop, name: str, scale: float) -> None:
    """Act as one worker until all records are done."""
    from django.db import connection

    from pipeline.core.states import Step
    from pipeline.transitions import claim

    try:
        while (step := shop.pop()) is not None:
            lease = claim(Step(step), name, others=[p for p in PASSES if p != step])
            if lease is not None:
                run(shop, lease, scale)
    finally:
        connection.close()


def run(shop: Shop, lease: Lease, scale: float) -> None:
    """Run a step against the simulated provider, and end the step like the product."""
    from pipeline.core.states import Step
    from pipeline.execution.preemption import Preemption
    from pipeline.transitions import complete_step, fenced, requeue_interrupted

    preemption = Preemption(lease)
    left = shop.calls[lease.job_id]
    with shop.lock:
        shop.running += 1
    at, made_room = time.monotonic(), False
    while left[lease.step.value] > 0 and not made_room:
        time.sleep(TICK_S * scale)
        now = time.monotonic()
        rate = min(CONCURRENCY / LATENCY_S, CALLS_PER_S / shop.running)
        left[lease.step.value] -= (now - at) / scale * rate
        at, made_room = now, preemption.is_due()
    with shop.lock:
        shop.running -= 1
    time.sleep(LATENCY_S * scale)
    following = Step.PASS1 if lease.step is Step.PASS05 else None
    with fenced(lease):
        if left[lease.step.value] > 0:
            requeue_interrupted(lease, preempted=True)
        else:
            complete_step(lease, following)
    if left[lease.step.value] > 0:
        shop.preempted += 1
        shop.wake(lease.step.value)
    elif following is not None:
        shop.wake(following.value)
    else:
        shop.ends[lease.job_id] = time.monotonic()


def a_record(size_class: int) -> UUID:
    """Insert a record whose pages are read; return the id of its job."""
    from pipeline.core.states import Step
    from tests.support.rows import a_job

    made: UUID = a_job(step=Step.PASS05, size_class=size_class).id
    return made


def measured(name: str, *, by_size: bool, scale: float) -> tuple[float, float]:
    """Run all records; return the mean seconds of the small and of the large records."""
    sizes = [2] * LARGE + [0] * SMALL
    shop = Shop(calls={})
    sizes_of: dict[UUID, int] = {}

    def submit(size: int) -> None:
        job = a_record(size if by_size else 0)
        sizes_of[job] = size
        shop.calls[job] = dict[str, float](CALLS[size])
        shop.wake("pass05")

    for size in sizes[:LARGE]:
        submit(size)
    threads = [
        threading.Thread(target=work, args=(shop, f"{name}-{n}", scale)) for n in range(WORKERS)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    while shop.running < LARGE:
        time.sleep(TICK_S * scale)
    for size in sizes[LARGE:]:
        submit(size)
    for thread in threads:
        thread.join()
    took = {job: (shop.ends[job] - began) / scale for job in sizes_of}
    small = [took[job] for job, size in sizes_of.items() if size == 0]
    large = [took[job] for job, size in sizes_of.items() if size == 2]
    print(
        f"{name:<22} {statistics.mean(small):>10.0f} {max(small):>10.0f}"
        f" {statistics.mean(large):>10.0f} {max(large):>10.0f} {shop.preempted:>10}"
    )
    return statistics.mean(small), statistics.mean(large)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=0.02, help="real seconds per simulated second"
    )
    scale = parser.parse_args(arguments).scale
    os.environ["TIME_SCALE"] = str(scale)
    with throw_away_servers() as places:
        os.environ.update(
            DATABASE_URL=places.database_url,
            DATABASE_OWNER_URL=places.owner_url,
            REDIS_URL=places.redis_url,
        )
        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        print(f"{LARGE} records of 3,000 pages, then {SMALL} of 5; {WORKERS} workers; seconds")
        print(
            f"{'order':<22} {'small mean':>10} {'small max':>10} {'large mean':>10}"
            f" {'large max':>10} {'made room':>10}"
        )
        first = measured("first-come", by_size=False, scale=scale)
        ours = measured("size and making room", by_size=True, scale=scale)
    small, large = ours[0] / first[0], ours[1] / first[1]
    print(
        f"small {small:.2f} of first-come (at most {MAX_SMALL}),"
        f" large {large:.2f} (at most {MAX_LARGE})"
    )
    return 0 if small <= MAX_SMALL and large <= MAX_LARGE else 1


if __name__ == "__main__":
    sys.exit(main())
