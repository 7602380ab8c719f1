"""The totals of a record, computed from its stored rows: encounters, passes and summary.

`rollup.settle` calls `write_totals` at every end of a step and of a job. So no figure depends on
how the step ended (requirement 21).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, Q, Sum

from pipeline.core.states import Step, WorkStatus
from pipeline.models import (
    Chunk,
    ClinicalMetrics,
    DiscoveryMetrics,
    DiscoverySession,
    Encounter,
    EncounterResult,
    Entity,
    EntityMetrics,
    NarrativeMetrics,
    Page,
    PageAssignment,
    Session,
    Summary,
    selectors,
)
from pipeline.models.fields import counted
from pipeline.transitions.total_figures import RecordFigures, figures_of

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


def write_totals(shell_file_id: UUID, session_id: UUID, step: Step, **of_summary: Any) -> None:
    """Write the totals of a record whose job leaves a step.

    Call this with the job locked, and after the move of the job. `of_summary` are further columns
    of the summary that change with the totals.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ENCOUNTERS, {"session": session_id})
    record = figures_of(shell_file_id, session_id)
    took_ms = sum(record.ran.values())
    Summary.objects.filter(shell_file_id=shell_file_id).update(
        pass05_metrics_id=_discovery(record, step),
        pass1_metrics_id=_detection(record),
        pass2_metrics_id=_later(
            ClinicalMetrics, record, Step.PASS2, of_items=("zones_total", "zones_succeeded")
        ),
        pass3_metrics_id=_later(
            NarrativeMetrics, record, Step.PASS3, of_items=(None, "narratives_written")
        ),
        entities_extracted_total=record.read["entities"]["count"],
        error_drill_down=_drill_down(record),
        total_tokens_used=record.tokens().total,
        total_cost_usd=record.cost_usd,
        total_processing_time_ms=counted(took_ms),
        **of_summary,
    )
    if record.read["has_ended"]:
        Session.objects.filter(id=session_id).update(
            total_processing_time=timedelta(milliseconds=took_ms)
        )


def _drill_down(record: RecordFigures) -> dict[str, Any] | None:
    """Return the stored failures, and the encounters that are held back for a review."""
    held = [
        {"pages": sorted({span[0] for span in spans}), "error_code": code}
        for spans, code in record.read["held"] or ()
    ]
    stored: dict[str, Any] | None = record.read["error_drill_down"]
    if not held:
        return stored
    return {"failures": [], **(stored or {}), "held": held}


def _discovery(record: RecordFigures, step: Step) -> UUID | None:
    known = record.metrics_id(Step.PASS05)
    if step is not Step.PASS05 and known is not None:
        # No later step changes these totals, and the count of unassigned pages reads their text.
        return known
    if not record.read["discovered"]:
        return None
    session = DiscoverySession.objects.get(shell_file_id=record.shell_file_id)
    chunks = _chunks(session)
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
        **_of_ocr(record),
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


def _detection(record: RecordFigures) -> UUID | None:
    encounters, entities = dict(record.read["encounters"]), record.read["entities"]
    if not encounters["encounters_total"]:
        return None
    batches = record.items(Step.PASS1)
    failed = record.failed_encounter(Step.PASS1)
    failure = {"failure_encounter_id": failed, **record.failure(Step.PASS1)}
    if failed is not None:
        own = EncounterResult.objects.filter(
            shell_file_id=record.shell_file_id,
            healthcare_encounter_id=failed,
            status=WorkStatus.FAILED,
        ).first()
        if own is not None:
            failure |= {"error_code": own.error_code, "error_summary": own.error_summary}
    metrics_id = _write(
        EntityMetrics,
        record,
        Step.PASS1,
        batches,
        **_of_ocr(record),
        entities_detected=entities["count"],
        entity_types_found=sorted(entities["categories"] or ()),
        batches_total=batches["total"],
        batches_succeeded=batches["succeeded"],
        confidence=entities["confidence"],
        **encounters,
        **failure,
    )
    if entities["unnamed"]:
        Entity.objects.filter(shell_file_id=record.shell_file_id, pass1_metrics=None).update(
            pass1_metrics_id=metrics_id
        )
    return metrics_id


def _later(
    model: type[L],
    record: RecordFigures,
    step: Step,
    *,
    of_items: tuple[str | None, str],
) -> UUID | None:
    """Write the metrics row of a pass after Pass 1, with the failure that the session names.

    `of_items` are the columns for the number of all items, and of the items that have succeeded.
    """
    items = record.items(step)
    if not items["total"]:
        return None
    of_all, of_done = of_items
    counts = {of_done: items["succeeded"], **({of_all: items["total"]} if of_all else {})}
    return _write(
        model,
        record,
        step,
        items,
        failure_encounter_id=record.failed_encounter(step),
        **counts,
        **record.read[f"{step}_encounters"],
        **record.read[f"{step}_results"],
        **record.failure(step),
    )


def _chunks(session: DiscoverySession) -> dict[str, Any]:
    """Return the counts, retries, tokens and models of the chunks."""
    rows = Chunk.objects.filter(discovery_session=session)
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


def _of_ocr(record: RecordFigures) -> dict[str, Any]:
    """Return the columns about OCR, which the metrics rows of Passes 0.5 and 1 have."""
    pages = record.read["ocr_pages"]
    return {
        "ocr_model_used": selectors.OCR_MODEL if pages else None,
        "ocr_pages_processed": pages,
    }


def _write(
    model: type[M], record: RecordFigures, step: Step, items: Mapping[str, Any], **figures: Any
) -> UUID:
    """Write the metrics row of a pass, and return its id.

    Tokens are those of the calls, so late replies count.
    """
    tokens = record.tokens(step)
    values: dict[str, Any] = {
        "profile_id": UUID(record.read["profile_id"]),
        "processing_session_id": record.session_id,
        "processing_time_ms": counted(record.ran.get(step, 0)),
        "ai_model_used": items["models"],
        "total_retries_used": items["retries"],
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "total_tokens": tokens.total,
        "user_agent": record.read["user_agent"],
        "ip_address": record.read["ip_address"],
        **figures,
    }
    known = record.metrics_id(step)
    if known and model._default_manager.filter(id=known).update(**values):
        return known
    rows = model._default_manager
    rows.bulk_create(
        [model(shell_file_id=record.shell_file_id, **values)],
        update_conflicts=True,
        unique_fields=["shell_file"],
        update_fields=list(values),
    )
    # The row of a record that a run before left behind keeps its id.
    stored: UUID = rows.values_list("id", flat=True).get(shell_file_id=record.shell_file_id)
    return stored
