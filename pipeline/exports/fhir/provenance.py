"""Provenance of each resource: engine, model, prompt version, page and quote; and the Devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import simplejson

from pipeline.core.states import Step
from pipeline.exports.fhir.context import Context
from pipeline.exports.fhir.terms import Json, derived_id, parts, present, reference
from pipeline.exports.rows import EncounterRow, EntityRow, RecordRow
from pipeline.models.entities import REVIEWER_ENGINE, ReviewVerdict

_DEVICES = UUID("8f0c9a3e-5b0e-4a53-9a5e-6f6f0f1f5a01")
"""Root of the ids of Devices, so that one engine has one id in every export."""
_PERSON = {"display": "a reviewer"}
"""Who a person is. The audit knows the name; an export does not give it away."""
_DECISIONS = {
    ReviewVerdict.ACCEPTED: "accepted the entity",
    ReviewVerdict.CORRECTED: "corrected the entity",
    ReviewVerdict.REJECTED: "rejected the entity",
}
_ROLES = {Step.PASS1: "found the entity", Step.PASS2: "structured the attributes"}


class Engine(NamedTuple):
    """A machine that wrote a part of the record: an engine or model, with its prompt version."""

    name: str
    """`local-rules-3`, or the version of the model that answered."""
    prompt_version: str
    """"" if the version is not known; `3 or 4` if an encounter has replies to both."""

    @property
    def id(self) -> UUID:
        """The id of the Device."""
        return derived_id(_DEVICES, f"device/{self.name}/{self.prompt_version}")


ITSELF = Engine("medproc", "")
"""The author of the document."""


def device(engine: Engine) -> Json:
    """Return the Device of an engine."""
    version = engine.prompt_version
    return present(
        resourceType="Device",
        id=str(engine.id),
        deviceName=[{"name": engine.name, "type": "model-name"}],
        version=[{"type": {"text": "prompt"}, "value": version}] if version else None,
    )


def engines_of(record: RecordRow, entity: EntityRow) -> dict[Step, Engine]:
    """Return the machines that wrote the entity and its attributes."""
    named = {Step.PASS1: entity.engine, Step.PASS2: entity.enrichment_engine}
    return {
        step: Engine(name, " or ".join(record.prompt_versions.get((step, entity.encounter_id), ())))
        for step, name in named.items()
        if name and name != REVIEWER_ENGINE
    }


def provenance(context: Context, entity: EntityRow) -> Json:
    """Return the Provenance of an entity's resource."""
    source = _source(
        context.record,
        entity.page_number,
        {
            "page": entity.page_number,
            "page-end": entity.page_end,
            "start": entity.char_start,
            "end": entity.char_end,
            "quote": entity.quote,
            "alignment": entity.alignment,
            "zone": entity.zone_type,
            "rule": entity.rule,
            "confidence": entity.confidence,
            "engine-confidence": entity.engine_confidence,
            "ocr-confidence": entity.ocr_confidence,
            "entity-index": entity.entity_index,
            "category": entity.category,
            "second-reading": _json(entity.second_reading),
            "enrichment-second-reading": _json(entity.enrichment_second_reading),
        },
    )
    return {
        "resourceType": "Provenance",
        "id": str(derived_id(entity.id, "provenance")),
        "target": [reference(entity.id)],
        "recorded": instant(entity.created_at),
        "agent": list(_agents(context.record, entity)),
        "entity": [source],
    }


def _agents(record: RecordRow, entity: EntityRow) -> Iterator[Json]:
    """Yield who wrote the values of an entity: machines, and the person who decided last."""
    if entity.engine == REVIEWER_ENGINE:
        yield {"type": {"text": _ROLES[Step.PASS1]}, "who": _PERSON}
    for step, engine in engines_of(record, entity).items():
        yield {"type": {"text": _ROLES[step]}, "who": reference(engine.id)}
    if entity.verdict in _DECISIONS:
        yield {"type": {"text": _DECISIONS[ReviewVerdict(entity.verdict)]}, "who": _PERSON}


def provenance_of_encounter(context: Context, encounter: EncounterRow) -> Json:
    """Return the Provenance of an encounter: the pages that it was read from."""
    where = {"page": encounter.page_start, "page-end": encounter.page_end}
    return {
        "resourceType": "Provenance",
        "id": str(derived_id(encounter.id, "provenance")),
        "target": [reference(encounter.id)],
        "recorded": instant(context.record.taken_at),
        "agent": [{"type": {"text": "found the encounter"}, "who": reference(ITSELF.id)}],
        "entity": [_source(context.record, encounter.page_start, where)],
    }


def instant(at: Any) -> str:
    """Return a time as a FHIR instant in UTC, to the millisecond."""
    text: str = at.isoformat(timespec="milliseconds")
    return text


def _source(record: RecordRow, page: int, where: Mapping[str, Any]) -> Json:
    return {
        "extension": parts("source-text", where),
        "role": "source",
        "what": reference(record.id) | {"display": f"page {page}"},
    }


def _json(value: Mapping[str, Any] | None) -> str | None:
    return simplejson.dumps(value, sort_keys=True) if value else None
