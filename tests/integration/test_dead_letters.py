"""An operator requeues a dead letter; its history stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from pipeline.core.states import JobStatus
from pipeline.models import Session
from tests.support.rows import a_job


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_db")
def test_a_dead_letter_is_requeued_with_a_new_budget_and_its_history_kept() -> None:
    died = timezone.now() - timedelta(hours=1)
    job = a_job(
        status=JobStatus.DEAD,
        crash_count=3,
        retry_count=2,
        dead_letter_at=died,
        completed_at=died,
        error_code="WORKER_LOST",
        error_details={"history": [{"event": "crashed"}]},
    )
    Session.objects.update(session_status="failed", pass1_status="failed")

    call_command("requeue", str(job.shell_file_id), reason="more memory")

    job.refresh_from_db()
    assert (job.status, job.dispatch_no) == (JobStatus.PENDING, 1)
    assert (job.crash_count, job.retry_count, job.dead_letter_at) == (0, 0, None)
    history = (job.error_details or {})["history"]
    assert [entry["event"] for entry in history] == ["crashed", "requeued"]
    assert (history[1]["crash_count"], history[1]["reason"]) == (3, "more memory")
    assert history[1]["dead_letter_at"] == died.isoformat()
    assert Session.objects.get().session_status == "processing"
    with pytest.raises(CommandError, match="is no dead letter but pending"):
        call_command("requeue", str(job.id))
