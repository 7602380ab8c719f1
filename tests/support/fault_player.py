"""Plays the faults of `fault_matrix` in real steps, and gives the rows at their end.

A step in this process calls the emulator through the real client. Each visit of one record meets
one fault. A cell of the matrix plays one visit and is rolled back; faults that disturb no other
visit share a step. Needs a database to commit to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings as django_settings
from django.db import transaction
from django.test import override_settings

from gemini_emulator import Emulator
from pipeline.core.states import Step
from pipeline.models import (
    DiscoverySession,
    Encounter,
    EncounterResult,
    EnrichedEntity,
    Entity,
    Job,
    NarrativeSentence,
    Page,
    ProviderCall,
    RecordListItem,
    Session,
    ShellFile,
    Summary,
)
from pipeline.models.work_tables import WORK_TABLES
from pipeline.operations.operator_actions import provider_resume
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import warm
from pipeline.ratelimit import RateLimiter, RateLimiterState
from pipeline.stages.intake import Received
from pipeline.workers import run_step
from tests.support import records
from tests.support.databases import as_owner
from tests.support.fault_matrix import LIMITED_CALLS, MATRIX, ExpectedBudget, FaultCase, Lasts
from tests.support.short_records import short_record

PASSES = tuple(WORK_TABLES)
LATER = (Step.PASS2, Step.PASS3)
"""Passes whose items have no parent; the failure of one item changes no other item."""
SKIPPED = {
    Step.PASS05: ("pass1_5", "pass2", "pass3"),
    Step.PASS1: ("pass1_5", "pass2", "pass3"),
    Step.PASS2: ("pass1_5", "pass3"),
    Step.PASS3: ("pass1_5",),
}
"""Passes that are switched off while a pass is played: a record ends with the played pass."""
PAGES = 2
"""Pages of each visit: two, so that a chunk, batch or zone can be halved."""
SCALE = 0.02
"""The time scale: a cooldown of 1.2 s parks a step, and a Retry-After date has whole seconds."""
PATIENT_S, HASTY_S = 60.0, 0.2
"""Seconds that a call may take; the second figure where only the deadline ends the call."""
TIMED_OUT_S = 3.0
"""The same where the reply to the next attempt must arrive in time."""
LONG_S = 3600.0
IN_OUTAGE = [row for row in MATRIX if row.in_outages]
PARKS = [row for row in MATRIX if row.budget.parks]
TOGETHER = [row for row in MATRIX if not row.budget.parks and row.budget is not ExpectedBudget.ENDS]
"""Faults that complete without an operator when they pass; they share one step."""
TIMED_OUT = [row for row in TOGETHER if row.times_out]
"""Faults that share a second step, whose calls have a deadline."""


def has_halves(step: Step) -> bool:
    """Return whether an item of a pass can be halved."""
    return step is not Step.PASS3


def passing(step: Step) -> list[FaultCase]:
    """Return the faults that share a step of a pass and let the record complete."""
    return [r for r in TOGETHER if has_halves(step) or r.budget is not ExpectedBudget.HALVES]


def lasting() -> list[FaultCase]:
    """Return the faults that share a step of a later pass although they last.

    Several rate limits that last would park the step together, so each of them is played alone.
    """
    alone = {ExpectedBudget.LIMITED}
    return [
        row
        for row in MATRIX
        if not row.budget.parks and not row.times_out and row.budget not in alone
    ]


def pages_of(visit: int) -> list[int]:
    """Return the pages of a visit; pages count from 1, visits from 0."""
    return [visit * PAGES + 1, visit * PAGES + 2]


def visit_of(row: FaultCase) -> int:
    """Return the visit of a fault."""
    return MATRIX.index(row)


def outage_visit_of(row: FaultCase) -> int:
    """Return the visit of a fault that is played in an outage only."""
    return len(MATRIX) + IN_OUTAGE.index(row)


def rules(lasts: Lasts) -> list[dict[str, Any]]:
    """Return the emulator's script: each visit meets its fault in every pass."""
    if lasts is Lasts.PERSISTENT:
        visits = [(row, visit_of(row)) for row in MATRIX]
        visits += [(row, outage_visit_of(row)) for row in IN_OUTAGE]
        return [{"fault": row.fault, "page": pages_of(v), **row.setting} for row, v in visits]
    return [
        {"fault": row.fault, "page": first, "kind": kind, "times": 1, **row.setting}
        for row in MATRIX
        for first in pages_of(visit_of(row))[:1]
        for kind in (WORK_TABLES[step].task for step in PASSES)
    ]


@dataclass(frozen=True)
class Ended:
    """The rows of a step at its end."""

    step: Step
    work: dict[int, Any]
    """Work items, by visit."""
    calls: Mapping[UUID | None, list[ProviderCall]]
    """The calls of each of them."""
    results: dict[int, EncounterResult]
    visible: Counter[int]
    """Number of visible accepted entities, enriched entities or sentences, by visit."""
    encounters: int
    discovery: DiscoverySession
    job: Any
    session: Any
    summary: Any
    record: ShellFile
    limiter: RateLimiterState

    @classmethod
    def of(cls, received: Received, step: Step) -> Ended:
        """Read the rows."""
        record = received.shell_file_id
        table = WORK_TABLES[step]
        rows: Any = table.rows.filter(**{table.record: record})
        calls: defaultdict[UUID | None, list[ProviderCall]] = defaultdict(list)
        # Read now, because the rows of a cell are rolled back.
        for call in ProviderCall.objects.filter(work_item_id__in=[row.id for row in rows]):
            calls[call.work_item_id].append(call)
        results = EncounterResult.objects.filter(shell_file_id=record)
        # A sentence about the whole record belongs to no visit.
        shown = _results(step, record).exclude(healthcare_encounter=None)
        pages = shown.values_list("healthcare_encounter__page_start", flat=True)
        return cls(
            step=step,
            calls=calls,
            work={row.page_range_start // PAGES: row for row in rows},
            results={r.healthcare_encounter.page_start // PAGES: r for r in results},
            visible=Counter(page // PAGES for page in pages),
            encounters=Encounter.objects.filter(shell_file_id=record).count(),
            discovery=DiscoverySession.objects.get(shell_file_id=record),
            job=Job.objects.select_related("incident").get(id=received.job_id),
            session=Session.objects.get(shell_file_id=record),
            summary=Summary.objects.get(shell_file_id=record),
            record=ShellFile.objects.get(id=record),
            limiter=_limiter().state(),
        )


@dataclass
class Played:
    """A record that waits for each pass, and an emulator for each duration of a fault."""

    waiting: dict[Step, Received]
    services: dict[Lasts, Emulator]
    _together: dict[tuple[Step, Lasts, bool], Ended] = field(default_factory=dict)
    _healthy: dict[Step, Counter[int]] = field(default_factory=dict)

    def lasting(self, step: Step, row: FaultCase) -> list[Ended]:
        """Play a fault that lasts: alone, or with the others in a later pass."""
        if step in LATER and row in lasting():
            return [self.together(step, lasts=Lasts.PERSISTENT)]
        return self.alone(step, Lasts.PERSISTENT, row)

    def alone(self, step: Step, lasts: Lasts, row: FaultCase) -> list[Ended]:
        """Play a fault; if it parks the job, resume the provider and play the fault again."""
        deadline_s = HASTY_S if row.times_out else PATIENT_S
        with self._keeping(step, [visit_of(row)]), self._asking(lasts), records.no_breaker():
            ends = [self._run(step, deadline_s=deadline_s)]
            if row.budget.parks:
                _resume()
                ends.append(self._run(step))
            return ends

    def together(
        self, step: Step, *, lasts: Lasts = Lasts.PASSING, timed_out: bool = False
    ) -> Ended:
        """Play faults in one step, each on its own visit; the result is cached."""
        key = step, lasts, timed_out
        if key not in self._together:
            if lasts is Lasts.PERSISTENT:
                rows = lasting()
            else:
                rows = [row for row in passing(step) if row.times_out is timed_out]
            deadline_s = TIMED_OUT_S if timed_out else PATIENT_S
            visits = [visit_of(row) for row in rows]
            with self._keeping(step, visits), self._asking(lasts), records.no_breaker():
                self._together[key] = self._run(step, deadline_s=deadline_s)
        return self._together[key]

    def outage(self, step: Step) -> list[Ended]:
        """Play all faults of an outage at once with the breaker on, then the end of the outage."""
        with self._keeping(step, [outage_visit_of(row) for row in IN_OUTAGE]):
            with self._asking(Lasts.PERSISTENT):
                down = self._run(step, deadline_s=HASTY_S)
            with self._asking(Lasts.PASSING):
                _resume()
                return [down, self._run(step)]

    def healthy(self, step: Step) -> Counter[int]:
        """Return the number of results of each visit, as the local engine finds them."""
        if step not in self._healthy:
            with transaction.atomic():
                self._healthy[step] = self._run(step).visible
                transaction.set_rollback(True)
        return self._healthy[step]

    def _run(self, step: Step, deadline_s: float = PATIENT_S) -> Ended:
        with override_settings(CALL_DEADLINE_S=deadline_s / SCALE, SKIPPED_PASSES=SKIPPED[step]):
            run_step.run_step(step.value)
        return Ended.of(self.waiting[step], step)

    @contextmanager
    def _keeping(self, step: Step, visits: Sequence[int]) -> Iterator[None]:
        """Keep only these visits of the record, and restore the others at the end."""
        record = self.waiting[step].shell_file_id
        kept = [page for visit in visits for page in pages_of(visit)]
        with transaction.atomic():
            others = Page.objects.filter(shell_file_id=record).exclude(page_number__in=kept)
            others.update(text="", is_blank=True)
            encounters = Encounter.objects.filter(shell_file_id=record)
            with as_owner():
                encounters.exclude(page_start__in=kept).delete()
                # Without a list of the record there is no narrative beside those of the visits.
                RecordListItem.objects.filter(shell_file_id=record).delete()
            yield
            transaction.set_rollback(True)

    @contextmanager
    def _asking(self, lasts: Lasts) -> Iterator[None]:
        url = self.services[lasts].url
        with override_settings(MEDPROC_PROVIDER="gemini", GEMINI_BASE_URL=url):
            yield


@contextmanager
def playing(folder: Path) -> Iterator[Played]:
    """Make the records and start the emulators."""
    path = short_record(
        folder / "record.pdf", len(MATRIX) + len(IN_OUTAGE), pages=PAGES, patient="Quill, Ada"
    )
    with (
        override_settings(
            TIME_SCALE=SCALE,
            LEASE_S=LONG_S / SCALE,
            STEP_DEADLINE_MIN_S=LONG_S / SCALE,
            CALL_DEADLINE_S=PATIENT_S / SCALE,
            RATE_LIMIT_BUDGET=LIMITED_CALLS,
            # The breaker's window shrinks with the time scale, but the calls do not.
            GATE_BREAKER_WINDOW_S=PATIENT_S / SCALE,
            PASS05_CHUNK_PAGES=PAGES,
            PASS1_BATCH_MIN_PAGES=PAGES,
            PASS1_BATCH_MAX_PAGES=PAGES,
        ),
        Emulator(faults=rules(Lasts.PERSISTENT)) as lasting_faults,
        Emulator(faults=rules(Lasts.PASSING)) as passing_faults,
    ):
        waiting = {}
        # The record of the last pass first: each step takes the only record that waits for it.
        for step in reversed(PASSES):
            waiting[step] = records.submit(path)
            earlier = ("pages", *PASSES[: PASSES.index(step)])
            with override_settings(SKIPPED_PASSES=("pass1_5",)):
                for each in earlier:
                    run_step.run_step(str(each))
        warm(ProviderConfig.of_settings())
        yield Played(waiting, {Lasts.PERSISTENT: lasting_faults, Lasts.PASSING: passing_faults})


def _results(step: Step, record: UUID) -> Any:
    """Return the visible results of a pass; of Pass 0.5, there are none."""
    if step is Step.PASS2:
        return EnrichedEntity.objects.filter(shell_file_id=record)
    if step is Step.PASS3:
        return NarrativeSentence.objects.filter(shell_file_id=record)
    return Entity.objects.filter(shell_file_id=record, accepted=True)


def _resume() -> None:
    """Resume the provider, as an operator does after they removed the cause."""
    provider_resume("gemini", reason="a test")
    # The resume takes effect on commit, and a cell never commits.
    _limiter().resume()


def _limiter() -> RateLimiter:
    return RateLimiter.for_("gemini", django_settings.GEMINI_MODEL)
