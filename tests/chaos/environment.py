"""The environment of the chaos scenes: real servers, provider, scheduler and workers.

Django is imported only after `chaos` has set the environment. With `TIME_SCALE`, a lease lasts
three seconds and the scheduler ticks every 0.75 s.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from medproc import embedded
from medproc.embedded import Places
from medproc.env import VARIABLES

if TYPE_CHECKING:
    from gemini_emulator import Emulator
    from pipeline.models import Job
    from pipeline.stages.intake import Received
    from tests.support.workers import WorkerCommand, WorkerFixture

T = TypeVar("T")

TIME_SCALE = 0.05
LEASE_S, RECONCILE_S = 60.0, 15.0
PATIENT_LEASE_S = 600.0
"""Half a minute here: while a server is away and no worker dies, no lease expires."""
PATIENCE_S = 300.0
VISITS = (4, 6, 8)
"""Sizes of the records in visits; records of one size differ only in their names."""
SHORT = "outages"
"""The scene that plays one outage after the other."""
SETTINGS: Mapping[str, Any] = {
    "DEBUG": False,
    "SECRET_KEY": "for-rehearsals-only-" + "0" * 50,
    "MEDPROC_PROVIDER": "gemini",
    "GEMINI_RPM": 1_000_000,
    "GEMINI_TPM": 1_000_000_000,
    "TIME_SCALE": TIME_SCALE,
    "LEASE_S": LEASE_S,
    "RECONCILE_S": RECONCILE_S,
    "RETRY_DELAY_S": 20,
    # A minute here: the scenes do not test a busy machine.
    "CALL_DEADLINE_S": 1200,
    "STEP_DEADLINE_MIN_S": 6000,
    "PASS05_CHUNK_PAGES": 2,
    "PASS1_CONCURRENCY_LIMIT": 2,
    "PASS1_BATCH_MIN_PAGES": 1,
    "PASS1_BATCH_MAX_PAGES": 1,
    "PASS1_BATCH_HARD_CEILING": 1,
    "SKIPPED_PASSES": "",
}


@dataclass
class ChaosEnvironment:
    """The running parts, and the submitted records."""

    places: Places
    emulator: Emulator
    worker_fixture: WorkerFixture
    folder: Path
    received: list[Received] = field(default_factory=list)
    references: list[Received] = field(default_factory=list)
    """One record of each size that met no fault."""
    _numbers: Iterator[int] = field(default_factory=count)

    @contextmanager
    def workers(
        self,
        seats: int = 4,
        *,
        worker_fixture: WorkerFixture | None = None,
        file_bytes: int | None = None,
        **settings: Any,
    ) -> Iterator[WorkerCommand]:
        """Run a pool of `seats` workers, each for every pass, with these settings."""
        folder = self.folder / f"pool-{next(self._numbers)}"
        folder.mkdir()
        from pipeline.queueing.queues import QUEUES

        queues = ("--queues", *reversed(QUEUES), "--workers", str(seats))
        pool = (worker_fixture or self.worker_fixture).start(
            folder, "", "rqworker-pool", *queues, file_bytes=file_bytes, settings=settings
        )
        try:
            yield pool
        finally:
            pool.send()
            pool.finish()

    def submit(self, visits: int | None = None) -> Received:
        """Submit the next record, with repeats; its idempotency key makes it one record."""
        from pipeline.operations import operator_actions
        from pipeline.stages.intake import Submission

        number = next(self._numbers)
        size = visits or VISITS[number % len(VISITS)]
        submission = Submission(
            path=self.folder / f"{size}.pdf",
            filename=f"record-{number}.pdf",
            idempotency_key=f"record-{number}",
            # An owner of its own: the record boards and keeps replies, and reuses nothing.
            owner=f"user:{number}",
        )
        received = tried(lambda: operator_actions.record_submit(submission))
        self.received.append(received)
        return received

    def keep_coming(self, count: int) -> None:
        """Submit records until `count` records are in progress."""
        for _ in range(count - len(self.open_jobs())):
            self.submit()

    def jobs(self, received: Sequence[Received] | None = None) -> list[Job]:
        """Read the jobs of these records, or of all records."""
        from pipeline.models import Job

        ids = [each.job_id for each in (self.received if received is None else received)]
        return tried(lambda: list(Job.objects.filter(id__in=ids)))

    def open_jobs(self) -> list[Job]:
        """Return the jobs that have not ended."""
        from pipeline.core.states import JOB_TERMINAL

        return [job for job in self.jobs() if job.status not in JOB_TERMINAL]

    def in_the_middle(self) -> None:
        """Wait until one more batch of Pass 1 has succeeded, so that a step is in progress."""
        from pipeline.models import Batch
        from tests.support.workers import until

        files = [each.shell_file_id for each in self.received]
        rows = Batch.objects.filter(processing_session__shell_file__in=files)
        done = rows.filter(status="succeeded").count()
        until(lambda: rows.filter(status="succeeded").count() > done, PATIENCE_S)


def tried(act: Callable[[], T]) -> T:
    """Repeat `act` until PostgreSQL answers."""
    from django.db import InterfaceError, OperationalError, connection

    from tests.support.workers import until

    found: list[T] = []

    def has_answered() -> bool:
        try:
            found.append(act())
        except (OperationalError, InterfaceError):
            connection.close()
        return bool(found)

    until(has_answered, PATIENCE_S)
    return found[0]


@contextmanager
def chaos(seed: int, latency: str) -> Iterator[ChaosEnvironment]:
    """Build the environment, in a process without Django set up; remove it at the end."""
    places = embedded.throw_away_places()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(
        {name: str(value) for name, value in SETTINGS.items()},
        DATABASE_URL=places.database_url,
        DATABASE_OWNER_URL=places.owner_url,
        REDIS_URL=places.redis_url,
        MEDPROC_DATA_DIR=str(folder / "var"),
        DJANGO_SETTINGS_MODULE="medproc.settings",
    )
    try:
        # Durable servers: a killed server must keep what it has committed.
        embedded.up(places)
        from gemini_emulator import Emulator

        with Emulator(latency=latency, seed=seed) as emulator:
            os.environ["GEMINI_BASE_URL"] = emulator.url
            yield from _set_up(places, folder, emulator)
    finally:
        embedded.throw_away(places)
        shutil.rmtree(folder, ignore_errors=True)


def _set_up(places: Places, folder: Path, emulator: Emulator) -> Iterator[ChaosEnvironment]:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    from pipeline.queueing.queues import RUN_STEP
    from tests.support.code_rows import load_icd_part
    from tests.support.short_records import short_record
    from tests.support.workers import WorkerFixture

    load_icd_part()
    for visits in VISITS:
        short_record(folder / f"{visits}.pdf", visits)
    worker_fixture = WorkerFixture(RUN_STEP)
    scheduler_folder = folder / "scheduler"
    scheduler_folder.mkdir()
    scheduler = worker_fixture.start(scheduler_folder, "", "rqcron")
    try:
        yield ChaosEnvironment(
            places=places, emulator=emulator, worker_fixture=worker_fixture, folder=folder
        )
    finally:
        scheduler.stop()
        worker_fixture.close()
