"""The totals of a record, computed from its stored rows: encounters, passes and summary.

`rollup.settle` calls `write_totals` at every end of a step and of a job. So no figure depends on
how the step ended (requirement 21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Avg, Count, F, Q, QuerySet, Sum

from pipeline.core.states import Step, WorkStatus
from pipeline.models import (
    Batch,
    Chunk,
    ClinicalMetrics,
    DiscoveryMetrics,
    DiscoverySession,
    Encounter,
    EncounterResult,
    EnrichedEntity,
    Entity,
    EntityMetrics,
    NarrativeMetrics,
    NarrativeResult,
    NarrativeSentence,
    Page,
    PageAssignment,
    PendingEncounter,
    PendingStatus,
    Session,
    Summary,
    ZoneResult,
    selectors,
)
from pipeline.models.fields import counted
from pipeline.models.work_item import WorkItem
from pipeline.transitions.run_time import run_ms

# The figures of encounters that have not succeeded change without a flush of their own: a step can
# end while their batches are half done, and a late reply adds tokens to an ended encounter.
_ENCOUNTERS = """
WITH added AS (
  SELECT pass1_encounter_result_id AS id,
    count(*) FILTER (WHERE status = 'succeeded') AS succeeded,
    count(*) FILTER (WHERE status = 'failed') AS failed,
    least(sum(greatest(0, attempt_count - 1)), 2147483647)::int AS retries,
    least(sum(coalesce(input_tokens, 0)::bigint), 2147483647)::int AS input_tokens,
    least(sum(coalesce(output_tokens, 0)::bigint), 2147483647)::int AS output_tokens,
    sum(coalesce(zones_detected, 0))::int AS zones
  FROM pass1_batch_results WHERE processing_session_id = %(session)s
  GROUP BY pass1_encounter_result_id
)
UPDATE pass1_encounter_results r SET batches_succeeded = a.succeeded, batches_failed = a.failed,
  total_retries_used = a.retries, total_input_tokens = a.input_tokens,
  total_output_tokens = a.output_tokens, total_zones_detected = a.zones,
  updated_at = clock_timestamp()
FROM added a
WHERE r.id = a.id AND (r.batches_succeeded, r.batches_failed, r.total_retries_used,
    r.total_input_tokens, r.total_output_tokens, r.total_zones_detected)
  IS DISTINCT FROM (a.succeeded, a.failed, a.retries, a.input_tokens, a.output_tokens, a.zones)
"""


M = TypeVar("M", DiscoveryMetrics, EntityMetrics, ClinicalMetrics, NarrativeMetrics)
L = TypeVar("L", ClinicalMetrics, NarrativeMetrics)


@dataclass(frozen=True, kw_only=True)
class _Record:
    """The rows that the totals of every pass need."""

    summary: Summary
    session: Session
    ran: Mapping[Step, int]

    @property
    def shell_file_id(self) -> UUID:
        shell_file_id: UUID = self.summary.shell_file_id
        return shell_file_id

    def failure(self, step: Step) -> dict[str, Any]:
        """Return the failure columns of a pass's metrics row, from the session."""
        is_here = self.session.failure_pass == step
        return {
            "error_code": self.session.error_code if is_here else None,
            "error_summary": self.session.error_message if is_here else None,
        }


def write_totals(shell_file_id: UUID, session_id: UUID, step: Step) -> None:
    """Write the totals of a record whose job leaves a step.

    Call this with the job locked, and after the move of the job.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ENCOUNTERS, {"session": session_id})
    record = _Record(
        summary=Summary.objects.get(shell_file_id=shell_file_id),
        session=Session.objects.get(id=session_id),
        ran=run_ms(shell_file_id),
    )
    took_ms = sum(record.ran.values())
    calls = selectors.call_totals(session_id)
    Summary.objects.filter(shell_file_id=shell_file_id).update(
        pass05_metrics=_discovery(record, step),
        pass1_metrics=_detection(record),
        pass2_metrics=_enrichment(record),
        pass3_metrics=_narration(record),
        entities_extracted_total=_visible(shell_file_id).count(),
        error_drill_down=_drill_down(record),
        total_tokens_used=calls["total_tokens"],
        total_cost_usd=calls["cost_usd"],
        total_processing_time_ms=counted(took_ms),
    )
    ended = Session.objects.filter(id=session_id, processing_completed_at__isnull=False)
    ended.update(total_processing_time=timedelta(milliseconds=took_ms))


def _visible(shell_file_id: UUID) -> QuerySet[Entity, Entity]:
    """Return the accepted entities of a record; only published encounters have entities."""
    return Entity.objects.filter(shell_file_id=shell_file_id, accepted=True)


def _drill_down(record: _Record) -> dict[str, Any] | None:
    """Return the stored failures, and the encounters that are held back for a review."""
    held = [
        {"pages": sorted({span[0] for span in spans}), "error_code": code}
        for spans, code in PendingEncounter.objects.filter(
            discovery_session__shell_file_id=record.shell_file_id, status=PendingStatus.HELD
        )
        .order_by("chunk__chunk_index", "local_index")
        .values_list("spans", "error_code")
    ]
    stored = record.summary.error_drill_down
    if not held:
        return stored
    return {"failures": [], **(stored or {}), "held": held}


def _discovery(record: _Record, step: Step) -> DiscoveryMetrics | None:
    if step is not Step.PASS05 and record.summary.pass05_metrics is not None:
        # No later step changes these totals, and the count of unassigned pages reads their text.
        return record.summary.pass05_metrics
    session = DiscoverySession.objects.filter(shell_file_id=record.shell_file_id).first()
    if session is None:
        return None
    chunks = _items(Chunk, Q(discovery_session=session))
    DiscoverySession.objects.filter(id=session.id).update(
        chunks_succeeded=chunks["succeeded"],
        chunks_failed=chunks["failed"],
        total_input_tokens=chunks["input"],
        total_output_tokens=chunks["output"],
    )
    assigned = Q(healthcare_encounter__isnull=False)
    characters = F("end_offset") - F("start_offset")
    text = PageAssignment.objects.filter(discovery_session=session).aggregate(
        total=Sum(characters, default=0),
        assigned=Sum(characters, filter=assigned, default=0),
    )
    encounters = Encounter.objects.filter(shell_file_id=record.shell_file_id)
    return _write(
        DiscoveryMetrics,
        record,
        Step.PASS05,
        chunks,
        encounters_detected=encounters.count(),
        encounters_held=session.encounters_held,
        pages_total=session.total_pages,
        pages_unassigned=_pages_unassigned(session),
        characters_total=text["total"],
        characters_assigned=text["assigned"],
        chunks_total=session.total_chunks,
        chunks_succeeded=chunks["succeeded"],
        encounter_types_found=sorted(
            set(encounters.order_by().values_list("encounter_type", flat=True))
        ),
        **record.failure(Step.PASS05),
    )


def _pages_unassigned(session: DiscoverySession) -> int:
    """Return the number of pages with text of which no encounter has any."""
    assigned = PageAssignment.objects.filter(
        discovery_session=session, healthcare_encounter__isnull=False
    ).values("page_number")
    pages = Page.objects.filter(shell_file_id=session.shell_file_id)
    return pages.exclude(page_number__in=assigned).filter(text__regex=r"\S").count()


def _detection(record: _Record) -> EntityMetrics | None:
    results = EncounterResult.objects.filter(shell_file_id=record.shell_file_id)
    of = results.aggregate(
        total=Count("id"),
        succeeded=Count("id", filter=Q(status=WorkStatus.SUCCEEDED)),
        failed=Count("id", filter=Q(status=WorkStatus.FAILED)),
        not_understood=Sum(
            "total_rows_not_understood", filter=Q(status=WorkStatus.SUCCEEDED), default=0
        ),
    )
    if not of["total"]:
        return None
    batches = _items(Batch, Q(processing_session=record.session))
    visible = _visible(record.shell_file_id)
    found = visible.aggregate(count=Count("id"), confidence=Avg("confidence"))
    failure = {"failure_encounter_id": None, **record.failure(Step.PASS1)}
    if record.session.failure_pass == Step.PASS1:
        failure["failure_encounter_id"] = record.session.failure_encounter_id
        own = results.filter(
            healthcare_encounter_id=record.session.failure_encounter_id, status=WorkStatus.FAILED
        ).first()
        if own is not None:
            failure |= {"error_code": own.error_code, "error_summary": own.error_summary}
    metrics = _write(
        EntityMetrics,
        record,
        Step.PASS1,
        batches,
        entities_detected=found["count"],
        rows_not_understood=of["not_understood"],
        entity_types_found=sorted(visible.order_by().values_list("category", flat=True).distinct()),
        encounters_total=of["total"],
        encounters_succeeded=of["succeeded"],
        encounters_failed=of["failed"],
        batches_total=batches["total"],
        batches_succeeded=batches["succeeded"],
        confidence=found["confidence"],
        **failure,
    )
    Entity.objects.filter(shell_file_id=record.shell_file_id, pass1_metrics=None).update(
        pass1_metrics=metrics
    )
    return metrics


def _enrichment(record: _Record) -> ClinicalMetrics | None:
    zones = _items(ZoneResult, Q(processing_session=record.session))
    if not zones["total"]:
        return None
    enriched = EnrichedEntity.objects.filter(shell_file_id=record.shell_file_id)
    figures = enriched.aggregate(
        entities_enriched=Count("id"),
        entities_coded=Count("id", filter=Q(code__isnull=False)),
        entities_flagged=Count("id", filter=~Q(flags=[])),
    )
    return _write_later(
        ClinicalMetrics,
        record,
        Step.PASS2,
        zones,
        _by_encounter(ZoneResult, record),
        zones_total=zones["total"],
        zones_succeeded=zones["succeeded"],
        **figures,
    )


def _narration(record: _Record) -> NarrativeMetrics | None:
    narratives = _items(NarrativeResult, Q(processing_session=record.session))
    if not narratives["total"]:
        return None
    sentences = NarrativeSentence.objects.filter(shell_file_id=record.shell_file_id)
    figures = sentences.aggregate(
        sentences_supported=Count("id", filter=Q(supported=True)),
        sentences_unsupported=Count("id", filter=Q(supported=False)),
    )
    return _write_later(
        NarrativeMetrics,
        record,
        Step.PASS3,
        narratives,
        _by_encounter(NarrativeResult, record),
        narratives_written=narratives["succeeded"],
        **figures,
    )


def _by_encounter(
    model: type[ZoneResult] | type[NarrativeResult], record: _Record
) -> dict[str, int]:
    """Return the counts of encounters: all, published, and failed.

    An encounter fails with one of its items. An encounter with all its replies, but without its
    results, has failed too: its publication was refused.
    """
    encounters = (
        model._default_manager.filter(
            processing_session=record.session, healthcare_encounter__isnull=False
        )
        .order_by()
        .values("healthcare_encounter_id")
        .annotate(
            all=Count("id"),
            done=Count("id", filter=Q(status=WorkStatus.SUCCEEDED)),
            lost=Count("id", filter=Q(status=WorkStatus.FAILED)),
            kept=Count("id", filter=Q(status=WorkStatus.SUCCEEDED, output__isnull=False)),
        )
    )
    return {
        "encounters_total": len(encounters),
        "encounters_succeeded": sum(
            each["all"] == each["done"] and not each["kept"] for each in encounters
        ),
        "encounters_failed": sum(
            each["lost"] > 0 or (each["all"] == each["done"] and each["kept"] > 0)
            for each in encounters
        ),
    }


def _write_later(
    model: type[L],
    record: _Record,
    step: Step,
    items: Mapping[str, Any],
    encounters: Mapping[str, int],
    **figures: int,
) -> L:
    """Write the metrics row of a pass after Pass 1, with the failure that the session names."""
    is_here = record.session.failure_pass == step
    return _write(
        model,
        record,
        step,
        items,
        failure_encounter_id=record.session.failure_encounter_id if is_here else None,
        **encounters,
        **figures,
        **record.failure(step),
    )


def _items(model: type[WorkItem], of: Q) -> dict[str, Any]:
    """Return the counts, retries, tokens and models of some work items."""
    rows = model._default_manager.filter(of)
    totals = rows.aggregate(
        total=Count("id"),
        succeeded=Count("id", filter=Q(status=WorkStatus.SUCCEEDED)),
        failed=Count("id", filter=Q(status=WorkStatus.FAILED)),
        retries=Sum(F("attempt_count") - 1, filter=Q(attempt_count__gt=1), default=0),
        input=Sum("input_tokens", default=0),
        output=Sum("output_tokens", default=0),
    )
    models = rows.exclude(ai_model_used=None).order_by().values_list("ai_model_used", flat=True)
    return {
        **totals,
        **{name: counted(totals[name]) for name in ("retries", "input", "output")},
        "models": ",".join(sorted(set(models))) or None,
    }


def _write(
    model: type[M], record: _Record, step: Step, items: Mapping[str, Any], **figures: Any
) -> M:
    """Write the metrics row of a pass. Tokens are those of the calls, so late replies count."""
    calls = selectors.call_totals(record.session.id, step)
    shared: dict[str, Any] = {
        "profile_id": record.summary.profile_id,
        "processing_session_id": record.session.id,
        "processing_time_ms": counted(record.ran.get(step, 0)),
        "ai_model_used": items["models"],
        "total_retries_used": items["retries"],
        "input_tokens": calls["input_tokens"],
        "output_tokens": calls["output_tokens"],
        "total_tokens": calls["total_tokens"],
        "user_agent": record.summary.user_agent,
        "ip_address": record.summary.ip_address,
    }
    if issubclass(model, DiscoveryMetrics | EntityMetrics):
        ocr_pages = selectors.ocr_page_count(record.shell_file_id)
        shared["ocr_model_used"] = selectors.OCR_MODEL if ocr_pages else None
        shared["ocr_pages_processed"] = ocr_pages
    metrics, _ = model._default_manager.update_or_create(
        shell_file_id=record.shell_file_id, defaults={**shared, **figures}
    )
    return metrics
