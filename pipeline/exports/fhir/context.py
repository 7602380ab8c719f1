"""What every resource needs beside its entity: the record, the contradictions, and the tags."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from pipeline.exports.fhir.placement import ResourceKind, placement
from pipeline.exports.fhir.terms import Json, extension, parts, present, reference, tagged, urn
from pipeline.exports.rows import EntityRow, RecordRow, is_reviewed


@dataclass(frozen=True, kw_only=True)
class Context:
    """The record, and the entities that a contradiction of its lists names."""

    record: RecordRow
    contradicted: Set[UUID]

    @property
    def patient(self) -> Json:
        """The reference to the patient."""
        return reference(self.record.patient_id)

    def is_open(self, entity: EntityRow) -> bool:
        """Return whether the list of unreviewed entities names the entity."""
        return bool(self.tags(entity)) and not entity.is_rejected

    def tags(self, entity: EntityRow) -> tuple[str, ...]:
        """Return the codes of `meta.tag` of an entity's resource."""
        found = {
            "not-reviewed": not is_reviewed(self.record, entity),
            "flagged": entity.is_doubted,
            "held": placement(entity) is ResourceKind.HELD and not entity.is_rejected,
            "rejected": entity.is_rejected,
            "contradicted": entity.id in self.contradicted,
        }
        return tuple(tag for tag, applies in found.items() if applies)


def started(kind: str, context: Context, entity: EntityRow) -> Json:
    """Return the beginning of an entity's resource: its id, tags, and the words of the page."""
    return present(
        resourceType=kind,
        id=str(entity.id),
        meta=tagged(*context.tags(entity)),
        extension=[
            *parts("assertion", _assertion(entity)),
            *parts("as-printed", _as_printed(entity)),
            *(extension("review-flag", valueCode=flag) for flag in dict.fromkeys(entity.flags)),
        ],
    )


def entry(resource: Json) -> Json:
    """Return the bundle's entry for a resource."""
    return {"fullUrl": urn(UUID(resource["id"])), "resource": resource}


def day(entity: EntityRow, attribute: str) -> str | None:
    """Return a date with the precision of the text; without Pass 2 the entity's own date."""
    if entity.attributes is not None:
        stated: str | None = entity.attributes.get(attribute)
        return stated
    own: date | None = entity.entity_date
    return own.isoformat() if own else None


def _assertion(entity: EntityRow) -> Json:
    return {
        "negated": entity.negated,
        "temporality": entity.temporality,
        "certainty": entity.certainty,
        "experiencer": entity.experiencer,
    }


PRINTED_COLUMNS = (
    "value", "unit", "reference_range", "abnormal_flag", "strength", "dose", "previous_dose",
    "route", "frequency", "status", "step", "reaction", "entity_date",
)  # fmt: skip
"""The columns of Pass 1 that hold words of the page or its own reading, besides the name."""


def _as_printed(entity: EntityRow) -> Json:
    return {"name": entity.name} | {column: getattr(entity, column) for column in PRINTED_COLUMNS}
