"""A new version runs beside the version before it, and with the Redis entries of that version."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from medproc.embedded import Places
from medproc.embedded.places import OWNER
from medproc.env import PROJECT_ROOT
from pipeline.core.states import JobStatus, Step
from pipeline.models import Encounter
from pipeline.queueing.queues import RUN_STEP, entry_id
from tests.support import records
from tests.support.record_runs import ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand

pytestmark = [
    pytest.mark.xdist_group("acceptance-deployment"),
    pytest.mark.slow(reason="waits until the reconciler sends the refused entries again: 40 s"),
]

CODE = ("api", "evaluation", "gemini_emulator", "medproc", "observability", "pipeline", "templates")
MODEL, COLUMN = "pipeline/models/encounters.py", "deployed_by"
FIELD = f'    {COLUMN} = models.TextField(null=True, blank=True, default="new")\n'
MIGRATION = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipeline", "{before}")]
    operations = [
        migrations.AddField("encounter", "{column}", models.TextField(null=True)),
    ]
"""
OLD_NAME = "pipeline.jobs.run_step"
"""The entry point of the version before. The module of this name no longer exists."""


def make_old(redis: Any, entry: str) -> None:
    """Return a waiting entry the dotted name of the version before."""
    key = f"rq:job:{entry}"
    name, instance, args, kwargs = json.loads(zlib.decompress(redis.hget(key, "data")))
    assert name == RUN_STEP
    redis.hset(key, "data", zlib.compress(json.dumps([OLD_NAME, instance, args, kwargs]).encode()))


def test_entries_with_an_old_entry_point_are_refused_and_sent_again(
    start_pool: Callable[..., WorkerCommand],
    scheduler: WorkerCommand,
    module_redis: Any,
    tmp_path: Path,
) -> None:
    received = [
        records.submit(short_record(tmp_path / f"{number}.pdf", visits=2)) for number in range(3)
    ]
    for record in received:
        make_old(module_redis, entry_id(record.job_id, Step.PAGES, record.dispatch_no))

    pool = start_pool(WORKER_CONCURRENCY=1, PAGES_CONCURRENCY=1)
    jobs = ended(*received)
    pool.stop()

    assert [job.status for job in jobs] == [JobStatus.COMPLETED] * 3
    assert [(job.crash_count, job.retry_count) for job in jobs] == [(0, 0)] * 3


def new_version(folder: Path) -> Path:
    """Copy the code, and add a column of encounters that only the copy knows and writes."""
    for name in CODE:
        shutil.copytree(PROJECT_ROOT / name, folder / name)
    shutil.copy(PROJECT_ROOT / "manage.py", folder)
    model = folder / MODEL
    text = model.read_text("utf-8")
    anchor = "    entities_published_at = fields.optional_time()\n"
    assert text.count(anchor) == 1
    model.write_text(text.replace(anchor, FIELD + anchor), "utf-8")
    latest = folder / "pipeline/migrations/max_migration.txt"
    before = latest.read_text("utf-8").strip()
    name = f"{int(before[:4]) + 1:04}_add_a_column"
    latest.write_text(f"{name}\n", "utf-8")
    (latest.parent / f"{name}.py").write_text(MIGRATION.format(before=before, column=COLUMN))
    return folder


@contextmanager
def running(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run the workers of the version in `folder`, and drain them at the end."""
    with (folder / "workers.log").open("wb") as log:
        pool = subprocess.Popen(
            [sys.executable, "manage.py", "rqworker-pool"],
            cwd=folder, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield
    finally:
        pool.send_signal(signal.SIGTERM)
        assert pool.wait(120) == 0


def writers(since: datetime) -> set[str | None]:
    """Return what the encounters since then hold in the new column; the old version writes NULL."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT {COLUMN} FROM healthcare_encounters WHERE created_at > %s",  # noqa: S608 - a constant
            [since],
        )
        return {row[0] for row in cursor.fetchall()}


def test_two_versions_work_side_by_side_across_a_migration(
    start_pool: Callable[..., WorkerCommand],
    scheduler: WorkerCommand,
    servers: Places,
    module_redis: Any,
    tmp_path: Path,
) -> None:
    def submitted(*numbers: int) -> list[Any]:
        paths = [short_record(tmp_path / f"{number}.pdf", visits=2) for number in numbers]
        return [records.submit(path) for path in paths]

    name = str(connection.settings_dict["NAME"])
    new = new_version(tmp_path / "new")
    environment = {
        **os.environ,
        "DATABASE_URL": servers.url_of("medproc_app", name),
        "DATABASE_OWNER_URL": servers.url_of(OWNER, name),
        "WORKER_CONCURRENCY": "1",
        "PAGES_CONCURRENCY": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    old_pool = start_pool(WORKER_CONCURRENCY=1, PAGES_CONCURRENCY=1)
    received = submitted(*range(3))

    migrate = subprocess.run(
        [sys.executable, "manage.py", "migrate"],
        cwd=new, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (migrate.returncode, migrate.stderr) == (0, "")
    migrated_at = timezone.now()
    with running(new, environment):
        while writers(migrated_at) != {None, "new"}:
            received += submitted(len(received))
            ended(received[-1])
        old_pool.stop()
        received += submitted(len(received))
        jobs = ended(*received)

    assert {job.status for job in jobs} == {JobStatus.COMPLETED}
    assert {(job.crash_count, job.retry_count) for job in jobs} == {(0, 0)}
    found = Encounter.objects.filter(
        shell_file_id__in=[each.shell_file_id for each in received]
    ).values_list("shell_file_id", "encounter_index")
    assert sorted(found) == sorted((job.shell_file_id, i) for job in jobs for i in (1, 2))
