"""How many records a machine processes, with 1, 2 and 3 workers, and what the workers need.

Run `python -m bench.service [--records 500] [--pages 5]`. The local engine reads, through all
passes. The records wait before the workers start. Prints the sizing table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench._service import POLL_S, Installation, whole_service

WORKERS = (1, 2, 3)


@dataclass
class Needs:
    """The most that the processes of the workers needed at one time."""

    memory_mb: int = 0
    """Proportional set size: a page that several processes share counts once."""
    connections: int = 0


def main() -> int:
    """Measure each number of workers, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--pages", type=int, default=5)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.workers:
        places = {"WORKER_CONCURRENCY": str(asked.workers), "PAGES_CONCURRENCY": "1"}
        with whole_service(**places) as service:
            return _measure(service, asked.workers, asked.records, asked.pages)
    print(f"{asked.records} records of {asked.pages} pages, {os.cpu_count()} cores")
    print("| workers | records per minute | pages per minute | memory (MB) | connections |")
    print("|---:|---:|---:|---:|---:|", flush=True)
    # Django reads the address of the database once, so each measurement has its own process.
    again = [sys.executable, "-m", "bench.service", *sys.argv[1:], "--workers"]
    return max(subprocess.run([*again, str(workers)]).returncode for workers in WORKERS)


def _measure(service: Installation, workers: int, records: int, pages: int) -> int:
    from pipeline.core.states import JobStatus
    from pipeline.models import Job

    _submit(service.folder, records, pages)
    needs, over = Needs(), threading.Event()
    began = time.monotonic()
    pool = service.start("rqworker-pool")
    service.start("rqcron")
    watcher = threading.Thread(target=_watch, args=(pool.pid, needs, over))
    watcher.start()
    waiting = (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PARKED)
    while Job.objects.filter(status__in=waiting).exists():
        time.sleep(POLL_S)
    minutes = (time.monotonic() - began) / 60
    over.set()
    watcher.join()
    done = Job.objects.filter(status=JobStatus.COMPLETED).count()
    print(
        f"| {workers} | {done / minutes:.0f} | {done * pages / minutes:.0f} | {needs.memory_mb} "
        f"| {needs.connections} |",
        flush=True,
    )
    return int(done < records)


def _submit(folder: Path, records: int, pages: int) -> None:
    from pipeline.operations import operator_actions
    from pipeline.stages.intake import Submission
    from samples.bulk import make_text_record

    path = folder / "record.pdf"
    for number in range(records):
        path.write_bytes(make_text_record(pages, 2, number))
        operator_actions.record_submit(Submission(path=path))


def _watch(pool: int, needs: Needs, over: threading.Event) -> None:
    from django.db import connection

    while not over.wait(1.0):
        with suppress(psutil.Error):
            parent = psutil.Process(pool)
            sizes = [each.memory_full_info().pss for each in _family(parent)]
            needs.memory_mb = max(needs.memory_mb, sum(sizes) // 2**20)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid()"
            )
            needs.connections = max(needs.connections, cursor.fetchone()[0] - 1)
    connection.close()


def _family(parent: psutil.Process) -> list[psutil.Process]:
    return [parent, *parent.children(recursive=True)]


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "medproc.settings")
    sys.exit(main())
