"""The moves of a job in any order: the rules of a Hypothesis state machine.

The moves are the product's own, on the database and the Redis of one test. Time passes by moving
the times in the rows back, in units that are long compared with the run. The model knows only the
holder and expiry of each lease, the number of crashes, and the committed results. A job moves
through all passes after the pages.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from pipeline.core.errors import ErrorCode, LeaseLostError, UserError
from pipeline.core.states import JOB_MOVES, JOB_TERMINAL, JobStatus, Step, WorkStatus
from pipeline.execution.preemption import PREEMPTED
from pipeline.execution.step_result import (
    SIGTERM,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepParked,
    StepResult,
)
from pipeline.models import (
    Batch,
    EncounterResult,
    EnrichedEntity,
    Entity,
    Job,
    NarrativeResult,
    NarrativeSentence,
    ProviderCall,
    ZoneResult,
)
from pipeline.models.work_item import WorkItem
from pipeline.operations import operator_actions
from pipeline.queueing import queues
from pipeline.stages.pass1 import store
from pipeline.transitions import (
    Failure,
    Flush,
    Parking,
    claim,
    expire_leases,
    renew_lease,
    row_of,
    write,
)
from pipeline.transitions.recovery import CRASH_LIMIT
from pipeline.workers import run_step
from tests.support.databases import as_owner
from tests.support.flush_rows import a_call, an_entity, succeed
from tests.support.job_machine_rows import (
    ITEMS,
    MachineWorker,
    Truth,
    a_sentence,
    an_enriched_entity,
    assert_later_results,
    items_of,
    plan_later_passes,
)
from tests.support.rows import a_deadline, a_job, an_encounter

UNIT_S = 20
"""Seconds of one unit of the model's time; a run takes less than one unit."""
LEASE = 3
"""Length of a lease in units."""
BATCHES = ITEMS
ENTITIES = 3
SENTENCES = 2
"""Sentences of each narrative."""
RECORDS = 4
STEPS = (Step.PASS3, Step.PASS2, Step.PASS1_5, Step.PASS1, Step.PASS05)
"""The steps that the workers serve, in the order of their priority."""

_PASSES = """
UPDATE job_queue SET available_at = available_at - {0}, lease_expires_at = lease_expires_at - {0},
  heartbeat_at = heartbeat_at - {0}, parked_until = parked_until - {0},
  step_started_at = step_started_at - {0}, updated_at = updated_at - {0};
UPDATE pass1_batch_results SET started_at = started_at - {0};
UPDATE pass2_zone_results SET started_at = started_at - {0};
UPDATE pass3_narrative_results SET started_at = started_at - {0};
""".replace("{0}", "make_interval(secs => %(by)s)")


class JobMachine(RuleBasedStateMachine):
    """Workers, operators, a reconciler and a Redis that loses entries, over a few records."""

    redis: Any
    workers = Bundle("workers")

    def __init__(self) -> None:
        super().__init__()
        self.truth: dict[UUID, Truth] = {}
        self.seen: dict[UUID, JobStatus] = {}
        self.reached: dict[UUID, int] = {}
        """The number of the last pass in which each job was seen."""
        self.now = 0
        self.names = 0

    @initialize()
    def begin(self) -> None:
        self.redis.flushdb()
        with as_owner(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM shell_files; DELETE FROM pauses; DELETE FROM user_profiles")
        self.submit(retries=1, large=False)

    # Moves of a record and its workers.

    @precondition(lambda self: len(self.truth) < RECORDS)
    @rule(retries=st.integers(0, 1), large=st.booleans())
    def submit(self, retries: int, large: bool) -> None:
        job = a_job(
            step=Step.PASS05,
            max_retries=retries,
            retry_delay=timedelta(seconds=2 * UNIT_S),
            size_class=2 if large else 0,
        )
        result, _ = an_encounter(job, batches=BATCHES)
        plan_later_passes(result)
        queues.enqueue_step(job.id, Step.PASS05.value, 0)
        self.truth[job.id] = Truth()

    @rule(target=workers)
    def wake_up(self) -> Any:
        """Let a worker take the next wake-up; the later pass comes first."""
        for step in STEPS:
            if self._popped(step):
                return self._claimed(step)
        return multiple()

    @rule(target=workers, step=st.sampled_from(STEPS))
    def stray_wake_up(self, step: Step) -> Any:
        """Let a worker take a wake-up that was sent twice."""
        return self._claimed(step)

    @rule(worker=workers, index=st.integers(0, BATCHES - 1))
    def begin_batch(self, worker: MachineWorker, index: int) -> None:
        item = worker.items[index] if worker.items else None
        if item is not None and item.status == WorkStatus.PENDING:
            item.status, item.started_at = WorkStatus.PROCESSING, timezone.now()
            if isinstance(item, Batch):
                store.mark_started(worker.result)
            self._flush(worker, Flush(work=type(item), items=[row_of(item)]))

    @rule(
        worker=workers, index=st.integers(0, BATCHES - 1), ok=st.sampled_from([True, True, False])
    )
    def settle_batch(self, worker: MachineWorker, index: int, ok: int) -> None:
        self._settle(worker, index, ok=bool(ok))

    @rule(worker=workers, which=st.integers(0, 5))
    def write_again(self, worker: MachineWorker, which: int) -> None:
        """Repeat a flush of unknown outcome, at once or much later."""
        if worker.written:
            # A lease holder repeats only its last flush, before it continues.
            is_holder = self.truth[worker.lease.job_id].holder is worker
            self._written(worker, worker.written[-1 if is_holder else which % len(worker.written)])

    @rule(worker=workers)
    def beat(self, worker: MachineWorker) -> None:
        truth = self.truth[worker.lease.job_id]
        if truth.holder is worker and not self._expired(truth):
            assert renew_lease(worker.lease, 60.0) == truth.is_cancelling
            truth.expires = self.now + LEASE
        else:
            with pytest.raises(LeaseLostError):
                renew_lease(worker.lease, 60.0)

    @rule(worker=workers, end=st.sampled_from(["done", "fail", "broke", "back", "room", "park"]))
    def end_step(self, worker: MachineWorker, end: str) -> None:
        """End a step, by the lease holder or late by a process that lost the lease."""
        self._end(worker, end)

    @rule(worker=consumes(workers), seen=st.booleans())
    def die(self, worker: MachineWorker, seen: bool) -> None:
        """Kill a horse; its worker may live and expire the lease."""
        truth = self.truth[worker.lease.job_id]
        if seen:
            expire_leases(worker.lease.worker_id)
            if truth.holder is worker:
                truth.expires = min(truth.expires, self.now)

    # Events from outside.

    @rule(units=st.sampled_from([1, 1, 2, LEASE, 40]))
    def time_passes(self, units: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_PASSES, {"by": units * UNIT_S})
        self.now += units

    @rule()
    def reconcile(self) -> None:
        expired = [t for t in self.truth.values() if t.holder is not None and self._expired(t)]
        tick = operator_actions.jobs_reconcile()
        assert tick.recovered + tick.dead_lettered == len(expired)
        for truth in expired:
            truth.holder, truth.crashes = None, truth.crashes + 1
        rows = Job.objects.filter(status=JobStatus.PENDING)
        for step in STEPS:
            in_line = self.redis.llen(f"rq:queue:{step}")
            assert in_line <= rows.filter(current_step=step).count(), "a wake-up was multiplied"

    @rule()
    def redis_is_flushed(self) -> None:
        self.redis.flushdb()

    @rule(step=st.sampled_from(STEPS))
    def redis_loses_an_entry(self, step: Step) -> None:
        for entry in self.redis.lrange(f"rq:queue:{step}", 0, 0):
            self.redis.delete(f"rq:job:{entry.decode()}")

    @rule()
    def stale_rows_are_reset(self) -> None:
        expired = [t for t in self.truth.values() if t.holder is not None and self._expired(t)]
        reset = operator_actions.stale_batches_reset(10 * UNIT_S)
        for row in reset:
            holder = self.truth[row.job_id].holder
            assert holder is None or self.truth[row.job_id] in expired
        # A stale row makes the reconciler take every expired lease and count the crashes.
        for truth in expired if reset else ():
            truth.holder, truth.crashes = None, truth.crashes + 1

    # Moves of operators.

    @rule(which=st.integers(0, RECORDS - 1))
    def cancel(self, which: int) -> None:
        job = self._job(which)
        truth = self.truth[job.id]
        try:
            done = operator_actions.job_cancel(job.id, by="ops")
        except UserError:
            assert job.status in JOB_TERMINAL
            return
        assert job.status not in JOB_TERMINAL
        is_held = truth.holder is not None and not self._expired(truth)
        assert done.is_ended is not is_held
        truth.is_cancelling = True
        if not is_held:
            truth.holder = None

    @rule(which=st.integers(0, RECORDS - 1))
    def retry(self, which: int) -> None:
        job = self._job(which)
        try:
            operator_actions.record_retry(job.shell_file_id, reason="a test", by="ops")
        except UserError:
            assert job.status not in {JobStatus.FAILED, JobStatus.CANCELLED}
            return
        assert job.status in {JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.PARKED}
        self.truth[job.id].crashes, self.truth[job.id].is_cancelling = 0, False

    @rule(which=st.integers(0, RECORDS - 1))
    def requeue(self, which: int) -> None:
        job = self._job(which)
        try:
            operator_actions.job_requeue(job.id, by="ops")
        except UserError:
            assert job.status != JobStatus.DEAD
            return
        assert job.status == JobStatus.DEAD
        self.truth[job.id].crashes, self.truth[job.id].is_cancelling = 0, False

    @rule(which=st.integers(0, RECORDS - 1))
    def release(self, which: int) -> None:
        job = self._job(which)
        assert operator_actions.job_release([job.id]) == (job.status == JobStatus.PARKED)

    @rule(step=st.sampled_from(STEPS), on=st.booleans())
    def pause(self, step: Step, on: bool) -> None:
        with suppress(UserError):
            (operator_actions.queue_pause if on else operator_actions.queue_resume)(
                step, reason="a test"
            )

    # Invariants after every move.

    @invariant()
    def no_job_is_lost_and_each_has_one_holder(self) -> None:
        rows = {row.id: row for row in Job.objects.all()}
        assert rows.keys() == self.truth.keys()
        for job_id, truth in self.truth.items():
            row, before = rows[job_id], self.seen.get(job_id)
            status = JobStatus(row.status)
            assert before in {None, status} or (before, status) in JOB_MOVES, (before, status)
            number = list(Step).index(Step(row.current_step))
            assert number >= self.reached.get(job_id, 0), "a job went back to an earlier pass"
            self.reached[job_id] = number
            self.seen[job_id] = status
            assert (status == JobStatus.PROCESSING) == (truth.holder is not None)
            assert row.worker_id == (truth.holder.lease.worker_id if truth.holder else None)
            assert row.crash_count == truth.crashes
            unwanted = {JobStatus.PENDING, JobStatus.PARKED, JobStatus.DEAD}
            assert not (truth.is_cancelling and status in unwanted)
            assert (status == JobStatus.DEAD) <= (truth.crashes == CRASH_LIMIT)

    @invariant()
    def what_was_committed_stays_and_is_there_once(self) -> None:
        items: dict[UUID, WorkItem] = {
            item.id: item
            for model in (Batch, ZoneResult, NarrativeResult)
            for item in model._default_manager.all()
        }
        for truth in self.truth.values():
            for item_id, output in truth.committed.items():
                item = items[item_id]
                assert (item.status, item.output) == (WorkStatus.SUCCEEDED, output)
        accepted = ProviderCall.objects.filter(accepted=True).values_list("work_item_id", flat=True)
        succeeded = [i for i, item in items.items() if item.status == WorkStatus.SUCCEEDED]
        assert Counter(accepted) == Counter(succeeded)
        published = Counter(Entity.objects.values_list("healthcare_encounter_id", flat=True))
        done = EncounterResult.objects.filter(status=WorkStatus.SUCCEEDED).values_list(
            "healthcare_encounter_id", flat=True
        )
        assert published == dict.fromkeys(done, ENTITIES)
        assert_later_results(set(done), entities=ENTITIES, sentences=SENTENCES)

    def teardown(self) -> None:
        """Let all jobs end by themselves, then let an operator retry the jobs that failed."""
        if not self.truth:
            return
        for step in STEPS:
            self.pause(step, on=False)
        self._drain()
        for which in range(len(self.truth)):
            self.retry(which)
            self.requeue(which)
        self._drain()
        self.seen.clear()
        self.no_job_is_lost_and_each_has_one_holder()
        self.what_was_committed_stays_and_is_there_once()
        assert set(self.seen.values()) == {JobStatus.COMPLETED}
        assert Entity.objects.count() == ENTITIES * len(self.truth)
        assert EnrichedEntity.objects.count() == ENTITIES * len(self.truth)
        assert NarrativeSentence.objects.count() == SENTENCES * BATCHES * len(self.truth)

    def _drain(self) -> None:
        """Work on the wake-ups from Redis alone until every job has ended."""
        for _ in range(8):
            self.time_passes(40)
            self.reconcile()
            for step in reversed(STEPS):
                while self._popped(step):
                    worker = self._claimed(step)
                    if isinstance(worker, MachineWorker):
                        self._work(worker)
            if not Job.objects.exclude(status__in=JOB_TERMINAL).exists():
                return
        raise AssertionError("a job has not ended")

    def _work(self, worker: MachineWorker) -> None:
        for index in range(BATCHES):
            self._settle(worker, index, ok=True)
        self._end(worker, "done" if worker.is_done else "fail")

    def _popped(self, step: Step) -> bool:
        entry = self.redis.lpop(f"rq:queue:{step}")
        if entry is None:
            return False
        # RQ skips an entry whose data Redis has lost, and takes the next entry.
        return bool(self.redis.delete(f"rq:job:{entry.decode()}")) or self._popped(step)

    def _claimed(self, step: Step) -> Any:
        free = self._claimable()
        self.names += 1
        lease = claim(step, f"host-{self.names}", others=[s for s in STEPS if s is not step])
        if lease is None:
            assert not free, "work that is due was not claimed"
            return multiple()
        truth = self.truth[lease.job_id]
        assert lease.job_id in free
        result = EncounterResult.objects.get(processing_session_id=lease.session_id)
        items = items_of(lease)
        assert {item.status for item in items}.isdisjoint({WorkStatus.PROCESSING})
        truth.holder = MachineWorker(lease=lease, result=result, items=items)
        truth.expires = self.now + LEASE
        return truth.holder

    def _claimable(self) -> set[UUID]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM job_queue WHERE status = 'pending' AND available_at <= now()"
                " AND current_step NOT IN (SELECT queue FROM pauses WHERE ended_at IS NULL)"
            )
            return {row[0] for row in cursor}

    def _settle(self, worker: MachineWorker, index: int, *, ok: bool) -> None:
        item = worker.items[index] if worker.items else None
        if item is None or worker.lease.step is Step.PASS05:
            return
        if item.status not in {WorkStatus.PENDING, WorkStatus.PROCESSING}:
            return
        if isinstance(item, Batch) and worker.result.status == WorkStatus.PENDING:
            store.mark_started(worker.result)
        succeed(item)
        if ok:
            item.output = {"by": worker.lease.gen}
        else:
            item.status, item.error_code = WorkStatus.FAILED, ErrorCode.API_5XX
        flush = Flush(
            work=type(item), items=[row_of(item)], calls=[a_call(worker.lease, item, accepted=ok)]
        )
        self._publish(worker, item, flush)
        self._flush(worker, flush)

    def _publish(self, worker: MachineWorker, item: Any, flush: Flush) -> None:
        """Add the results of the group that ends with this item, as the stages do."""
        result, lease = worker.result, worker.lease
        ended = {each.status for each in worker.items} <= {WorkStatus.SUCCEEDED, WorkStatus.FAILED}
        if isinstance(item, NarrativeResult):
            if item.status == WorkStatus.SUCCEEDED:
                flush.results = [a_sentence(lease, item, n) for n in range(SENTENCES)]
        elif isinstance(item, ZoneResult):
            if worker.is_done:
                entities = Entity.objects.filter(
                    healthcare_encounter_id=item.healthcare_encounter_id
                )
                flush.results = [an_enriched_entity(lease, item, entity) for entity in entities]
        else:
            if ended:
                store.add_up(result, worker.items)
                failed = [b for b in worker.items if b.status == WorkStatus.FAILED]
                if failed:
                    store.mark_failed(result, worker.items, failed)
                else:
                    store.mark_succeeded(result, [], [], [], {})
                    flush.results = [an_entity(lease, result, index=n) for n in range(ENTITIES)]
            flush.parents = [store.result_row(result)]

    def _flush(self, worker: MachineWorker, flush: Flush) -> None:
        worker.written.append(flush)
        self._written(worker, flush)

    def _written(self, worker: MachineWorker, flush: Flush) -> None:
        truth = self.truth[worker.lease.job_id]
        if truth.holder is not worker:
            with pytest.raises(LeaseLostError):
                write(worker.lease, flush)
            return
        write(worker.lease, flush)
        for row in flush.items:
            if row["status"] == WorkStatus.SUCCEEDED:
                truth.committed[UUID(row["id"])] = row["output"]

    def _end(self, worker: MachineWorker, end: str) -> None:
        truth = self.truth[worker.lease.job_id]
        if end == "done" and not worker.is_done:
            end = "back"
        if truth.holder is not worker:
            with pytest.raises(LeaseLostError):
                run_step._end(worker.lease, a_deadline(), self._result(worker, end))
            return
        run_step._end(worker.lease, a_deadline(), self._result(worker, end))
        truth.holder = None
        if end == "done":
            truth.crashes = 0

    def _result(self, worker: MachineWorker, end: str) -> StepResult:
        if end == "park":
            until = timezone.now() + timedelta(seconds=2 * UNIT_S)
            return StepParked(parking=Parking(reason="a test", until=until))
        if end in {"back", "room"}:
            return StepInterrupted(reason=PREEMPTED if end == "room" else SIGTERM)
        if end == "done":
            return StepCompleted()
        code = ErrorCode.API_5XX if end == "fail" else ErrorCode.INPUT_INVALID
        # The failed batches have the code of the first case, which a retry could repair.
        is_of_items = end == "fail" and worker.has_failed
        return StepFailed(failure=Failure(code=code, message="a test"), is_of_items=is_of_items)

    def _expired(self, truth: Truth) -> bool:
        return truth.expires <= self.now

    def _job(self, which: int) -> Job:
        ids = list(self.truth)
        return Job.objects.get(id=ids[which % len(ids)])
