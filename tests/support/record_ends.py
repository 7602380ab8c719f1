"""The ways in which a record of three encounters can end, and the rows that each end leaves.

Real steps reach each end, so a test needs the database and Redis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.execution import executor
from pipeline.execution.step_result import CANCELLED, StepInterrupted
from pipeline.models import Batch, Job, PageAssignment
from pipeline.operations import operator_actions
from pipeline.providers.prompts import Question
from pipeline.queueing.reconciler import recover_expired
from pipeline.stages.intake import Received
from pipeline.transitions import Lease, claim, mark_hung, release_due
from pipeline.workers import run_step, stuck_steps
from tests.support import records
from tests.support.databases import as_owner
from tests.support.lying_model import lying_model
from tests.support.rows import a_deadline
from tests.support.short_records import DRUG, short_record

WORKER = "worker-1-4711-ab12cd34"
BROKEN = {"fault": "bad-json", "kind": "entities", "page": 3}


@dataclass(frozen=True, kw_only=True)
class End:
    """One kind of end: how a record of three encounters meets it, and the expected rows."""

    reach: Callable[[Path, Any], UUID]
    job: str
    stage: str | None = "pass1"
    code: str | None
    encounters: dict[str, int] = field(default_factory=lambda: {"succeeded": 2, "pending": 1})
    batches: dict[str, int] | None = None
    """The batches by status, where they differ from the encounters."""
    lost: tuple[tuple[str, str], ...] = ()
    """Code and underlying code of each entry of the drill-down."""
    outage: tuple[tuple[str, int], ...] = ()
    failed: int = 0
    unfinished: int = 0
    held: int = 0
    has_run: bool = True
    """Whether a worker began a step."""


def _submitted(folder: Path, **options: Any) -> Received:
    received = records.submit(short_record(folder / "record.pdf", 3), **options)
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def _two_published(folder: Path, settings: Any) -> UUID:
    """Publish two of three encounters; the job is parked for the retry of the third."""
    settings.JOB_MAX_RETRIES = 1
    received = _submitted(folder)
    with records.through_emulator([BROKEN]), records.no_breaker():
        run_step.run_step("pass1")
    assert Job.objects.get(id=received.job_id).status == JobStatus.PARKED
    return received.shell_file_id


def _claimed(folder: Path, settings: Any) -> Lease:
    """Let a worker hold the step that goes on after two encounters were published."""
    record = _two_published(folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    lease = claim(Step.PASS1, WORKER)
    assert lease is not None
    assert lease.shell_file_id == record
    return lease


def _completed(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    run_step.run_step("pass1")
    return received.shell_file_id


def _failed_encounter(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    with records.through_emulator([BROKEN]), records.no_breaker():
        run_step.run_step("pass1")
    return received.shell_file_id


def _out_of_time(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    # The step has two seconds, and its only call hangs; a step that progresses would be requeued.
    with pytest.MonkeyPatch.context() as patch, records.through_emulator(latency="60/call"):
        patch.setattr(executor, "step_time_s", lambda *_, **__: 2.0)
        run_step.run_step("pass1")
    return record


def _stuck(folder: Path, settings: Any) -> UUID:
    lease = _claimed(folder, settings)
    # `end_steps_of` also closes the connection, and with it the transaction of this test.
    stuck_steps._end(*stuck_steps.leases_of(WORKER))
    return lease.shell_file_id


def _cancelled_in_its_step(folder: Path, settings: Any) -> UUID:
    lease = _claimed(folder, settings)
    assert not operator_actions.job_cancel(lease.job_id).is_ended
    run_step._end(lease, a_deadline(), StepInterrupted(reason=CANCELLED))
    return lease.shell_file_id


def _cancelled_while_parked(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    assert operator_actions.job_cancel(record).is_ended
    return record


def _worker_lost(folder: Path, settings: Any) -> UUID:
    lease = _claimed(folder, settings)
    for crash in range(3):
        Job.objects.filter(id=lease.job_id).update(lease_expires_at=timezone.now())
        (found,) = recover_expired(lease.job_id)
        assert found.is_dead is (crash == 2)
        claim(Step.PASS1, WORKER)
    return lease.shell_file_id


def _lost_in(step: Step, received: Received) -> UUID:
    """Lose the worker of a step three times."""
    for _ in range(3):
        lease = claim(step, WORKER)
        assert lease is not None
        assert lease.job_id == received.job_id
        expired = {"lease_expires_at": timezone.now(), "heartbeat_at": timezone.now()}
        Job.objects.filter(id=lease.job_id).update(**expired)
        (found,) = recover_expired(lease.job_id)
    assert found.is_dead
    return received.shell_file_id


def _lost_in_pages(folder: Path, settings: Any) -> UUID:
    return _lost_in(Step.PAGES, records.submit(short_record(folder / "record.pdf", 3)))


def _lost_in_pass05(folder: Path, settings: Any) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", 3))
    run_step.run_step("pages")
    return _lost_in(Step.PASS05, received)


def _hung_three_times(folder: Path, settings: Any) -> UUID:
    lease: Lease | None = _claimed(folder, settings)
    assert lease is not None
    record = lease.shell_file_id
    for hang in range(3):
        assert lease is not None
        assert mark_hung(lease.job_id, lease.gen, WORKER)
        (found,) = recover_expired(lease.job_id)
        assert found.is_dead is (hang == 2)
        lease = claim(Step.PASS1, WORKER)
    return record


def _cancelled_before_its_first_step(folder: Path, settings: Any) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", 3))
    assert operator_actions.job_cancel(received.shell_file_id).is_ended
    return received.shell_file_id


def _publication_refused(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    # The database takes the entities of two encounters and refuses those of the third.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE pass1_entity_detections ADD CONSTRAINT refused"
            " CHECK (page_number < 3) NOT VALID"
        )
    run_step.run_step("pass1")
    return received.shell_file_id


def _foreign_encounter(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)

    def say(question: Question) -> dict[str, Any]:
        (page,) = (part.page for part in question.slices)
        entity = {"category": "medication", "page": page, "quote": DRUG, "name": DRUG}
        return {"entities": [entity], **({"encounter_id": str(uuid4())} if page == 3 else {})}

    with lying_model(say):
        run_step.run_step("pass1")
    return received.shell_file_id


def _completed_after_a_retry(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    with records.through_emulator():
        run_step.run_step("pass1")
    return record


def _broken_plan(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    # The plan meets a page that is not there: an error of ours, which no code describes.
    with as_owner():
        PageAssignment.objects.filter(page_number=3).update(page_number=99)
    run_step.run_step("pass1")
    return received.shell_file_id


def _broken_step(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    Batch.objects.filter(pass1_encounter_result__shell_file_id=record).update(spans=[[3]])
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now(), max_retries=0)
    release_due()
    with records.through_emulator():
        run_step.run_step("pass1")
    return record


def _unreadable(folder: Path, settings: Any) -> UUID:
    path = folder / "broken.pdf"
    path.write_bytes(b"%PDF-1.7\nnothing that a reader understands\n%%EOF\n")
    received = records.submit(path)
    run_step.run_step("pages")
    return received.shell_file_id


def _chunk_failed(folder: Path, settings: Any) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", 3))
    run_step.run_step("pages")
    with records.through_emulator([{"fault": "bad-json", "kind": "discovery"}]):
        run_step.run_step("pass05")
    return received.shell_file_id


def _another_patient(folder: Path, settings: Any) -> UUID:
    records.run_record(_submitted(folder, patient_reference="ref-7"))
    other = short_record(folder / "other.pdf", 3, patient="Quarrington, Thaddeus B.")
    record: UUID = records.run_record(records.submit(other, patient_reference="ref-7")).id
    return record


SPENT = ("MAX_RETRIES_EXCEEDED", "PARSE_JSON")
ENDS = {
    "completed": End(
        reach=_completed, job="completed", stage=None, code=None, encounters={"succeeded": 3}
    ),
    "failed encounter": End(
        reach=_failed_encounter,
        job="failed",
        code="MAX_RETRIES_EXCEEDED",
        encounters={"succeeded": 2, "failed": 1},
        lost=(SPENT,),
        outage=(("PARSE_JSON", 1),),
        failed=1,
    ),
    "deadline": End(
        reach=_out_of_time,
        job="failed",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "hung beyond its deadline": End(
        reach=_stuck,
        job="failed",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "cancelled in its step": End(
        reach=_cancelled_in_its_step,
        job="cancelled",
        code="CANCELLED",
        lost=(("CANCELLED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "parked and then cancelled": End(
        reach=_cancelled_while_parked,
        job="cancelled",
        code="CANCELLED",
        lost=(("CANCELLED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "worker lost": End(
        reach=_worker_lost,
        job="dead",
        code="WORKER_LOST",
        lost=(("WORKER_LOST", "PARSE_JSON"),),
        unfinished=1,
    ),
    "hung three times": End(
        reach=_hung_three_times,
        job="dead",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "worker lost in pages": End(
        reach=_lost_in_pages,
        job="dead",
        stage="pages",
        code="WORKER_LOST",
        encounters={},
        lost=(("WORKER_LOST", "WORKER_LOST"),),
        unfinished=1,
    ),
    "worker lost in pass05": End(
        reach=_lost_in_pass05,
        job="dead",
        stage="pass05",
        code="WORKER_LOST",
        encounters={},
        lost=(("WORKER_LOST", "WORKER_LOST"),),
        unfinished=1,
    ),
    "cancelled before its first step": End(
        reach=_cancelled_before_its_first_step,
        job="cancelled",
        stage="pages",
        code="CANCELLED",
        encounters={},
        lost=(("CANCELLED", "CANCELLED"),),
        unfinished=1,
        has_run=False,
    ),
    "publication refused": End(
        reach=_publication_refused,
        job="failed",
        code="DB_ERROR",
        encounters={"succeeded": 2, "failed": 1},
        batches={"succeeded": 3},
        lost=(("DB_ERROR", "DB_ERROR"),),
        unfinished=1,
    ),
    "foreign encounter": End(
        reach=_foreign_encounter,
        job="failed",
        code="ENCOUNTER_NOT_FOUND",
        encounters={"succeeded": 2, "failed": 1},
        lost=(("ENCOUNTER_NOT_FOUND", "ENCOUNTER_NOT_FOUND"),),
        outage=(("ENCOUNTER_NOT_FOUND", 1),),
        failed=1,
    ),
    "completed after a retry": End(
        reach=_completed_after_a_retry,
        job="completed",
        stage=None,
        code=None,
        encounters={"succeeded": 3},
    ),
    "internal error before the plan": End(
        reach=_broken_plan,
        job="failed",
        code="INTERNAL_ERROR",
        encounters={},
        lost=(("INTERNAL_ERROR", "INTERNAL_ERROR"),),
        unfinished=1,
    ),
    "internal error in a step": End(
        reach=_broken_step,
        job="failed",
        code="INTERNAL_ERROR",
        lost=(("INTERNAL_ERROR", "PARSE_JSON"),),
        unfinished=1,
    ),
    "pages failed": End(
        reach=_unreadable,
        job="failed",
        stage="pages",
        code="INPUT_INVALID",
        encounters={},
        lost=(("INPUT_INVALID", "INPUT_INVALID"),),
        unfinished=1,
    ),
    "chunk failed": End(
        reach=_chunk_failed,
        job="failed",
        stage="pass05",
        code="MAX_RETRIES_EXCEEDED",
        encounters={},
        lost=(SPENT,),
        failed=1,
    ),
    "another patient": End(
        reach=_another_patient, job="completed", stage=None, code=None, encounters={}, held=3
    ),
}
