"""medproc: the whole step of Pass 1, from the claim to the last committed row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.peers.work import PeerWork

statements = 0
"""SQL statements of all connections of this process."""


@contextmanager
def workers(work: PeerWork) -> Iterator[None]:
    """Prepare this process as a pool prepares itself before it forks its workers."""
    import django

    django.setup()
    from django.db.backends.signals import connection_created

    from pipeline.workers.warming import warm, warm_engine

    connection_created.connect(_count_statements)
    warm()
    warm_engine()
    yield


def run(work: PeerWork) -> Iterable[tuple[str, str]]:
    """Run the step of the best waiting record; the pairs are read after the clock has stopped."""
    from django.test import override_settings

    from pipeline.workers import run_step

    with override_settings(GEMINI_BASE_URL=work.url):
        run_step.run_step("pass1")
    return _answers()


def _answers() -> Iterator[tuple[str, str]]:
    """Yield the stored replies of the record that ended last, if its job has completed."""
    from pipeline.core.states import JobStatus, WorkStatus
    from pipeline.models import Batch, Job

    job = Job.objects.filter(completed_at__isnull=False).latest("completed_at")
    if job.status == JobStatus.COMPLETED:
        batches = Batch.objects.filter(
            pass1_encounter_result__shell_file_id=job.shell_file_id, status=WorkStatus.SUCCEEDED
        )
        for batch in batches.order_by("id"):
            # The step refuses a reply with another token, and does not store the token.
            yield batch.id.hex, json.dumps({"item_token": batch.id.hex, **batch.unpacked_output})


def _count_statements(connection: Any, **kwargs: object) -> None:
    connection.execute_wrappers.append(_counted)


def _counted(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
    global statements
    statements += 1
    return execute(sql, params, many, context)
