"""Hostile files pass through a real worker: each ends with its error, and the worker lives on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import InputError
from pipeline.models import Job, Page, ShellFile
from pipeline.queueing.queues import queue_depths
from pipeline.stages.intake import Received
from tests.support import hostile_files, records
from tests.support.record_runs import RECORD_PATIENCE_S
from tests.support.redis_contents import everything
from tests.support.workers import WorkerCommand, children, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-hostile"),
    pytest.mark.slow(reason="every hostile file through real workers: 16 s"),
]

WORKERS = 2
every_file = pytest.mark.parametrize("case", hostile_files.HOSTILE, ids=lambda case: case.name)


class Handed:
    """The results of all hostile files after the pages workers."""

    def __init__(self, pool: WorkerCommand, folder: Path) -> None:
        self.pool = pool
        until(lambda: len(children(pool.pid)) == WORKERS)
        self.workers = sorted(children(pool.pid))
        self.taken: dict[str, Received] = {}
        self.refused: dict[str, InputError] = {}
        for case in hostile_files.HOSTILE:
            path = folder / case.name
            path.write_bytes(case.build())
            try:
                self.taken[case.name] = records.submit(path)
            except InputError as error:
                self.refused[case.name] = error

    def job(self, name: str) -> Any:
        return Job.objects.get(id=self.taken[name].job_id)

    def is_through(self, name: str) -> bool:
        job = self.job(name)
        return bool(job.status == "failed" or job.current_step != "pages")


@pytest.fixture(scope="module")
def handed(
    start_pool: Callable[..., WorkerCommand], tmp_path_factory: pytest.TempPathFactory
) -> Handed:
    """Submit all files at once, and return their results."""
    pool = start_pool("--queues", "pages", "--workers", str(WORKERS))
    handed = Handed(pool, tmp_path_factory.mktemp("hostile"))
    until(lambda: all(map(handed.is_through, handed.taken)), RECORD_PATIENCE_S)
    return handed


@every_file
def test_a_hostile_file_completes_or_fails_at_once_with_its_code(
    handed: Handed, case: hostile_files.Hostile
) -> None:
    if case.name in handed.refused:
        assert handed.refused[case.name].code == case.ends
        return
    job = handed.job(case.name)
    record = ShellFile.objects.get(id=job.shell_file_id)
    if case.ends == "read":
        assert (job.status, job.current_step) == ("pending", "pass05")
        assert record.status == "pages_complete"
        assert Page.objects.filter(shell_file=record).count() == record.page_count
    else:
        assert (job.status, job.current_step, job.error_code) == ("failed", "pages", case.ends)
        assert (job.lease_gen, job.retry_count, job.crash_count) == (1, 0, 0)
        assert record.status == "uploaded"
        assert job.error_details["stage"] == "pages"


def test_a_file_that_is_refused_at_the_upload_leaves_nothing_behind(handed: Handed) -> None:
    assert handed.refused.keys() == {"empty.pdf", "program.pdf"}
    assert ShellFile.objects.count() == len(handed.taken)


def test_the_same_workers_live_and_read_the_next_record(handed: Handed) -> None:
    received = [records.submit(records.LAB) for _ in range(WORKERS)]

    ids = [each.job_id for each in received]
    until(lambda: Job.objects.filter(id__in=ids, current_step="pass05").count() == WORKERS)

    assert sorted(children(handed.pool.pid)) == handed.workers
    assert queue_depths(["pages"]) == {"pages": 0}


def test_no_name_of_a_file_leaves_the_database(handed: Handed, module_redis: Any) -> None:
    names = [case.name for case in hostile_files.HOSTILE]
    errors = [
        f"{job.last_error} {job.error_details}" for job in Job.objects.filter(status="failed")
    ]

    for text in (handed.pool.printed(), everything(module_redis), *errors):
        assert not [name for name in names if name in text]
