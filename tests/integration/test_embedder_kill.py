"""A worker that is killed between the reply with vectors and their rows leaves all or nothing."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from django.db import connection, connections, transaction

from pipeline.core.states import Step
from pipeline.execution import embedding_calls
from pipeline.execution.step_result import StepCompleted
from pipeline.models import CodeCandidate, CodeVector, Job, ProviderCall
from pipeline.stages.pass1_5 import run as stage
from pipeline.transitions import Lease, claim, take_expired
from tests.integration.test_embedder import a_lease, embedding
from tests.support.code_rows import load_icd_part
from tests.support.rows import a_deadline
from tests.support.workers import until

pytestmark = pytest.mark.xdist_group("embedder")


def test_a_kill_between_reply_and_rows_loses_both_and_the_next_worker_asks_again(
    cloned_db: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_calls, "CALL_S", 400.0)
    settings.LEASE_S, settings.CALL_DEADLINE_S = 2400, 600.0
    load_icd_part()
    lease = a_lease()
    with embedding(settings) as emulator:
        # No open connection may be shared with the child.
        connections.close_all()
        child = StageProcess(lease)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE code_search_vectors IN SHARE MODE")
            os.write(child.start, b"x")
            until(lambda: is_waiting_for_vectors(cursor))
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)

        Job.objects.filter(id=lease.job_id).update(lease_expires_at="2026-01-01T00:00:00Z")
        lost = ProviderCall.objects.count(), CodeVector.objects.count()
        taken = take_expired(job_id=lease.job_id)
        again = claim(Step.PASS1_5, "w2")
        assert again is not None
        result = stage.run(again, a_deadline())

        asked = [line.outcome for line in emulator.log()]

    assert lost == (0, 0)
    assert len(taken) == 1
    assert isinstance(result, StepCompleted)
    assert asked == ["ok", "ok"]
    (call,) = ProviderCall.objects.all()
    assert (call.outcome, call.lease_gen) == ("OK", again.gen)
    assert CodeVector.objects.count() > 0
    assert CodeCandidate.objects.filter(reason__contains="; meaning ").exists()


class StageProcess:
    """A child process that runs the stage once it is told to start."""

    def __init__(self, lease: Lease) -> None:
        ready, self.start = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.read(ready, 1)
                stage.run(lease, a_deadline())
            finally:
                os._exit(0)


def is_waiting_for_vectors(cursor: Any) -> bool:
    cursor.execute(
        "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'code_search_vectors'::regclass"
    )
    return cursor.fetchone() is not None
