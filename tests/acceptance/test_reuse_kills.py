"""A process that dies before any write of a reuse leaves everything or nothing of each result.

One record is extracted. Each further record reuses the results in a process of its own, which kills
itself before its n-th write: before the first write of the first record, the fourth of the second,
and so on to the last.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.db import connection, connections

from pipeline.core.states import JobStatus
from pipeline.models import ExtractionFlight, Job, ProviderCall, Reuse, ReviewItem
from pipeline.providers import factory
from pipeline.providers.config import ProviderConfig
from pipeline.stages.intake import Received
from tests.support import records
from tests.support.code_rows import load_icd_part
from tests.support.later_pass_rows import later_results, misplaced, partly_visible
from tests.support.record_runs import take_over
from tests.support.short_records import short_record

pytestmark = [
    pytest.mark.xdist_group("acceptance-reuse-kills"),
    pytest.mark.timeout(1800),
    pytest.mark.slow(reason="one whole record for every third write of a reuse: minutes"),
]

_WRITE = re.compile(r"\b(INSERT|UPDATE|DELETE|COPY)\b")
STRIDE = 3
"""Every write takes three times as long; a run with 1 found nothing either."""
FEWEST_WRITES = 40
"""A reuse through six passes writes more often; fewer would mean that the kills missed it."""


def test_a_kill_before_a_write_of_a_reuse_leaves_everything_or_nothing(
    cloned_db: str, redis_db: object, tmp_path: Path, settings: Any
) -> None:
    settings.SKIPPED_PASSES = ()
    load_icd_part()
    path = short_record(tmp_path / "record.pdf", 1)
    first = records.completed_record(path, owner="cli")
    # The children inherit the lexicon, as the horses of a worker do.
    factory.warm(ProviderConfig.of_settings())
    whole, calls = later_results(first.id), ProviderCall.objects.count()
    assert {table for table, _ in whole} == {"candidates", "enriched", "told", "listed"}

    for number in itertools.count(1, STRIDE):
        second = records.submit(path, owner="cli")
        was_killed = _killed_at(number, second)
        _assert_whole_or_nothing(second, whole)
        _finish(second)
        assert Job.objects.get(id=second.job_id).status == JobStatus.COMPLETED, number
        assert later_results(second.shell_file_id) == whole, number
        assert ReviewItem.objects.filter(shell_file_id=second.shell_file_id).count() == 1
        if not was_killed:
            break

    assert number > FEWEST_WRITES
    assert ProviderCall.objects.count() == calls
    assert set(Reuse.objects.values_list("source_id", flat=True)) == {first.id}
    assert not ExtractionFlight.objects.exists()


def _assert_whole_or_nothing(received: Received, whole: dict[tuple[str, int], list[str]]) -> None:
    assert partly_visible() == 0
    # A reused item has no call of its own.
    found = misplaced([received.shell_file_id])
    assert [each for each in found if "without an accepted call" not in each] == []
    for part, rows in later_results(received.shell_file_id).items():
        assert rows == whole[part], part


def _finish(received: Received) -> None:
    if Job.objects.filter(id=received.job_id, status=JobStatus.PROCESSING).exists():
        take_over(received.job_id)
    records.run_record(received)


def _killed_at(number: int, received: Received) -> bool:
    """Run a record in a child that dies at its n-th write; return whether the child has died."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        _run_and_exit(number, received)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"the child ended with {status}"
    return os.WIFSIGNALED(status)


def _run_and_exit(number: int, received: Received) -> NoReturn:
    ended = 1
    writes = itertools.count(1)

    def dying(
        execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any
    ) -> Any:
        if _WRITE.search(sql) and next(writes) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return execute(sql, parameters, many, context)

    try:
        with connection.execute_wrapper(dying):
            records.run_record(received)
        ended = 0
    finally:
        os._exit(ended)
