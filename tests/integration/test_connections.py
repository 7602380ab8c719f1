"""A step uses one database connection, however many calls are in flight."""

from __future__ import annotations

from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pytest
from django.db import connection
from django.db.backends.signals import connection_created

from pipeline.models import Batch, Job, ProviderCall
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

ITEMS, THREADS = 200, 8


@pytest.mark.usefixtures("cloned_db")
def test_two_hundred_calls_in_eight_threads_open_no_connection_of_their_own(
    tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    settings.PASS1_CONCURRENCY_LIMIT = THREADS
    for name in ("MIN_PAGES", "MAX_PAGES", "HARD_CEILING"):
        setattr(settings, f"PASS1_BATCH_{name}", 1)
    received = records.submit(short_record(tmp_path / "record.pdf", 1, pages=ITEMS))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    opened: list[str] = []

    def note(**_: Any) -> None:
        opened.append(current_thread().name)

    connection_created.connect(note)
    try:
        with records.through_emulator():
            run_step.run_step("pass1")
    finally:
        connection_created.disconnect(note)

    assert Job.objects.get(id=received.job_id).status == "completed"
    assert Batch.objects.count() == ITEMS
    assert ProviderCall.objects.filter(step="pass1", accepted=True).count() == ITEMS
    assert set(opened) <= {main_thread().name}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert cursor.fetchone() == (1,)
