"""Rows of a flush, as the step executor makes them: calls, payloads, entities."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.utils import timezone

from pipeline.core.states import WorkStatus
from pipeline.models import EncounterResult
from pipeline.models.work_item import WorkItem
from pipeline.transitions import Lease


def a_call(lease: Lease, item: WorkItem, *, accepted: bool = True) -> dict[str, Any]:
    """Return the row of a call of a work item: accepted, or refused as PARSE_JSON."""
    return {
        "id": str(uuid4()),
        "processing_session_id": str(lease.session_id),
        "step": lease.step.value,
        "work_item_id": str(item.id),
        "attempt": 1,
        "outcome": "OK" if accepted else "PARSE_JSON",
        "accepted": accepted,
        "split": "",
        "provider": "local",
        "model": "m",
        "prompt_version": "1",
        "schema_version": "1",
        "queue_wait_ms": 0,
        "duration_ms": 5,
        "input_tokens": 1,
        "output_tokens": 1,
        "thinking_tokens": 0,
        "cached_tokens": 0,
        "cost_usd": "0",
        "lease_gen": lease.gen,
        "started_at": timezone.now().isoformat(),
    }


def a_payload(call: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a call's stored reply."""
    return {
        "call_id": call["id"],
        "page_range_start": 1,
        "page_range_end": 1,
        "prompt_sha256": "0" * 64,
        "reply": "\\x0102",
    }


def an_entity(lease: Lease, result: EncounterResult, *, index: int = 0) -> dict[str, Any]:
    """Return the row of an entity of an encounter."""
    return {
        "id": str(uuid4()),
        "shell_file_id": str(lease.shell_file_id),
        "healthcare_encounter_id": str(result.healthcare_encounter_id),
        "processing_session_id": str(lease.session_id),
        "patient_id": str(result.patient_id),
        "entity_index": index,
        "category": "lab",
        "name": "glucose",
        "page_number": 1,
        "char_start": 0,
        "char_end": 7,
        "quote": "glucose",
        "alignment": "exact",
        "accepted": True,
        "engine": "m",
        "engine_confidence": 1.0,
        "confidence": 1.0,
        "review_flags": [],
    }


def succeed(item: WorkItem) -> None:
    """Let the first attempt of a work item succeed."""
    item.status = WorkStatus.SUCCEEDED
    item.started_at = item.completed_at = timezone.now()
    item.attempt_count = 1
