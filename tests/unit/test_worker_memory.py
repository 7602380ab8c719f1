"""The memory of the workers is measured, shown, and turned into advice for each host."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from observability.metrics.worker_memory import HostMemory, WorkerMemory, hosts
from pipeline.workers import memory

MB, GB = 1024, 1024 * 1024


def a_worker(step: int = 0, peak: int = 0, total: int = 8 * GB, free: int = 4 * GB) -> WorkerMemory:
    return WorkerMemory(
        worker_kib=80 * MB, step_kib=step, peak_kib=peak, total_kib=total, free_kib=free
    )


def only(*workers: WorkerMemory) -> HostMemory:
    (host,) = hosts(("vm-1", worker) for worker in workers)
    return host


@pytest.mark.skipif(sys.platform != "linux", reason="the figures come from /proc")
def test_a_step_is_measured_with_its_children() -> None:
    code = "import subprocess, sys; x = bytearray(60_000_000); print(flush=True); sys.stdin.read()"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    step = subprocess.Popen(
        [sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert step.stdout is not None
    step.stdout.readline()

    figures = memory.report(os.getpid(), step.pid, 7)
    step.communicate()
    without = memory.report(os.getpid(), None, 300 * MB)

    assert figures["step_kib"] > 60_000_000 // 1024
    assert figures["peak_kib"] == figures["step_kib"]
    assert (without["step_kib"], without["peak_kib"]) == (0, 300 * MB)
    assert 0 < figures["worker_kib"] < figures["total_kib"]
    assert 0 < figures["free_kib"] < figures["total_kib"]


def test_an_entry_without_figures_has_no_memory() -> None:
    whole = dict.fromkeys(memory.FIELDS, "1024")

    assert str(WorkerMemory.of(whole)) == "RSS 1 MB, step 1 MB, largest step 1 MB"
    assert WorkerMemory.of({}) is None
    assert WorkerMemory.of(whole | {"free_kib": "a lot"}) is None


def test_a_host_with_spare_memory_says_how_many_workers_fit() -> None:
    host = only(a_worker(step=200 * MB, peak=300 * MB), a_worker())

    assert host.words == "vm-1: 2 workers use 360 MB; 4.0 GB of 8.0 GB free"
    # 4 GB free, less 100 + 300 MB for these two, less 10 % of 8 GB; 480 MB for each more.
    assert host.advice == "Memory for 5 more workers."
    assert not host.is_short


def test_a_host_whose_steps_can_exhaust_it_is_told_what_to_lower() -> None:
    host = only(a_worker(peak=900 * MB, total=2 * GB, free=1 * GB), a_worker(total=2 * GB))

    assert host.is_short
    assert host.advice == (
        "Steps can need 1.8 GB more. Lower WORKER_CONCURRENCY or PAGES_CONCURRENCY on this host,"
        " or add memory."
    )


def test_before_the_first_step_the_documented_size_of_a_step_counts() -> None:
    host = only(a_worker(total=1 * GB, free=300 * MB))

    assert host.needed_kib == 150 * MB
    assert host.advice == "Memory for the present workers; add memory before you add workers."


def test_hosts_that_are_short_come_first() -> None:
    short = a_worker(total=1 * GB, free=10 * MB)

    assert [host.host for host in hosts([("a", a_worker()), ("b", short)])] == ["b", "a"]
