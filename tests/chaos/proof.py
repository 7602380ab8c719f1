"""The proof after each scene: no result is lost, none is stored twice, no encounter is partial.

The proof reads the tables and the emulator's log, not the pipeline's own selectors.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from gemini_emulator.recorded_rows import prove_log
from gemini_emulator.request_log import LogLine
from pipeline.core.states import JOB_TERMINAL, JobStatus
from pipeline.models import Entity, Job, ProviderCall, Session, ShellFile
from pipeline.models.work_tables import WORK_TABLES
from pipeline.stages.intake import Received
from tests.chaos.environment import PATIENCE_S, VISITS, ChaosEnvironment, tried
from tests.support.later_pass_rows import later_results, misplaced, partly_visible
from tests.support.record_runs import astray
from tests.support.rows import crashes_of
from tests.support.workers import until

CRASHES = 3
FOUND = ("category", "name", "value", "dose", "page_number", "char_start", "char_end", "accepted")
_PARTIAL = """
SELECT count(*) FROM healthcare_encounters h
WHERE EXISTS (SELECT 1 FROM pass1_entity_detections d WHERE d.healthcare_encounter_id = h.id)
  AND (h.entities_published_at IS NULL OR EXISTS (
    SELECT 1 FROM pass1_batch_results b
    WHERE b.healthcare_encounter_id = h.id AND b.status <> 'succeeded'))
"""


@dataclass
class ChaosObservations:
    """Observations during a scene, for the comparison with its end."""

    chaos: ChaosEnvironment
    began: int = 0
    """Number of records that were submitted before the scene."""
    committed: dict[str, float] = field(default_factory=dict)
    """Unix time at which a work item was first seen as succeeded, by item token."""
    awake: list[tuple[UUID, float, float]] = field(default_factory=list)
    """Record, start and end of each horse that woke after it had lost its lease."""
    partial: int = 0
    """Number of looks that found a partly published encounter or narrative."""

    def __post_init__(self) -> None:
        self.began = len(self.chaos.received)

    @property
    def received(self) -> list[Received]:
        """The records of this scene."""
        return self.chaos.received[self.began :]

    def look(self) -> None:
        """Record which calls are committed, and look for partly published encounters."""
        tokens, partial = tried(self._seen)
        now = time.time()
        for token in tokens:
            self.committed.setdefault(token, now)
        self.partial += bool(partial)

    def _seen(self) -> tuple[list[str], int]:
        tokens = [
            pk.hex
            for table in WORK_TABLES.values()
            for pk in table.rows.filter(status="succeeded").values_list("pk", flat=True)
        ]
        with connection.cursor() as cursor:
            cursor.execute(_PARTIAL)
            return tokens, cursor.fetchone()[0] + partly_visible()

    def close(self, *, may_fail: bool = False) -> dict[str, Any]:
        """Wait for the end of all records; return the figures, with the errors as `findings`."""
        ids = [each.job_id for each in self.received]
        rows = Job.objects.filter(id__in=ids, status__in=JOB_TERMINAL)
        until(lambda: tried(rows.count) == len(ids), PATIENCE_S)
        self.look()
        jobs = self.chaos.jobs(self.received)
        findings = [*self._unended(jobs, may_fail=may_fail), *self._differences(jobs)]
        files = [each.shell_file_id for each in self.received]
        findings += tried(lambda: misplaced(files))
        tokens = _tokens_of(files)
        # The log and this process use the same clock.
        log = [line for line in self.chaos.emulator.log() if line.item_token in tokens]
        late = self._late(log)
        proof = prove_log([line for line in log if line not in late])
        repeated = sum(line.time > self.committed.get(line.item_token, line.time) for line in log)
        lost = [finding for finding in proof.findings if finding.startswith("lost")]
        others = [finding for finding in proof.findings if not finding.startswith("lost")]
        for name, number in (("repeated calls", repeated), ("partial encounters", self.partial)):
            if number:
                findings.append(f"{number} {name}")
        figures = {
            "records": len(jobs),
            **{f"records {k}": n for k, n in sorted(Counter(j.status for j in jobs).items())},
            "calls": proof.counts["calls in the log"],
            "accepted": proof.counts["accepted calls"],
            "lost": len(lost) + len(ids) - len(jobs),
            "doubled": len(others),
            "partial": self.partial,
            "repeated": repeated,
            "sent on waking": len(late),
        }
        return {**figures, "findings": [*findings, *proof.findings]}

    def _late(self, log: Sequence[LogLine]) -> list[LogLine]:
        """Return the calls that a horse sent after it woke without its lease.

        The horse was about to send them when it fell asleep. No worker stores their replies.
        """
        found = []
        for shell_file_id, woken, ended in self.awake:
            session = Session.objects.get(shell_file_id=shell_file_id)
            calls = ProviderCall.objects.filter(processing_session=session)
            answered = set(calls.values_list("response_id", flat=True))
            tokens = _tokens_of([shell_file_id])
            found += [
                line
                for line in log
                if line.item_token in tokens
                and woken <= line.time <= ended
                and line.response_id not in answered
            ]
        return found

    def _unended(self, jobs: Sequence[Job], *, may_fail: bool) -> list[str]:
        found = []
        for job in jobs:
            if job.status == JobStatus.COMPLETED:
                continue
            if job.status == JobStatus.DEAD and crashes_in_a_row(job) == CRASHES:
                continue
            if job.status == JobStatus.FAILED and may_fail and job.error_code == "DB_ERROR":
                continue
            found.append(
                f"job {job.id} ended as {job.status} in {job.current_step}"
                f" with {job.error_code}: {job.last_error}"
            )
        return found

    def _differences(self, jobs: Sequence[Job]) -> list[str]:
        """Compare the results of each record with a record of the same size that met no fault."""
        whole = {
            _size(each.shell_file_id): _results(each.shell_file_id)
            for each in self.chaos.references
        }
        found: list[str] = []
        for job in jobs:
            reference = whole[_size(job.shell_file_id)]
            results = _results(job.shell_file_id)
            complete = job.status == JobStatus.COMPLETED
            wrong = [part for part, rows in results.items() if rows != reference.get(part)]
            if wrong:
                found.append(f"job {job.id} shows {wrong} different from its reference")
            if complete and results.keys() != reference.keys():
                lost = sorted(reference.keys() - results.keys())
                found.append(f"job {job.id} is completed without {lost}")
            if complete and astray(job.shell_file):
                found.append(f"job {job.id} has entities in the wrong place")
        return found


def _tokens_of(files: Sequence[UUID]) -> set[str]:
    return {
        pk.hex
        for table in WORK_TABLES.values()
        for pk in table.rows.filter(processing_session__shell_file__in=files).values_list(
            "pk", flat=True
        )
    }


def crashes_in_a_row(job: Job) -> int:
    """Count the recorded crashes of the job's current step."""
    return sum(crash["step"] == job.current_step for crash in crashes_of(job))


def _size(shell_file_id: UUID) -> int:
    return int(ShellFile.objects.values_list("size_bytes", flat=True).get(id=shell_file_id))


def _results(shell_file_id: UUID) -> dict[tuple[str, int], list[Any]]:
    """Return the visible results of a record by table and encounter number."""
    rows = Entity.objects.filter(shell_file_id=shell_file_id).values_list(
        "healthcare_encounter__encounter_index", *FOUND
    )
    entities: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for index, *columns in rows:
        entities["entities", index].append(tuple(columns))
    return {
        **{part: sorted(found, key=str) for part, found in entities.items()},
        **later_results(shell_file_id),
    }


def references(chaos: ChaosEnvironment) -> None:
    """Run one record of each size before the first scene."""
    with chaos.workers():
        chaos.references = [chaos.submit(visits) for visits in VISITS]
        until(lambda: not chaos.open_jobs(), PATIENCE_S)
    assert {job.status for job in chaos.jobs()} == {JobStatus.COMPLETED}
    for reference in chaos.references:
        tables = {table for table, _ in _results(reference.shell_file_id)}
        assert tables == {"entities", "candidates", "enriched", "told", "listed"}
    chaos.received.clear()
