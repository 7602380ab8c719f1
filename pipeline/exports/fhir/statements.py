"""Basic: an entity that is no finding of the patient, or that waits for a person."""

from __future__ import annotations

import simplejson

from pipeline.exports.fhir import terms
from pipeline.exports.fhir.context import Context, started
from pipeline.exports.fhir.placement import ResourceKind, placement
from pipeline.exports.fhir.terms import CODE_SYSTEMS, Json, coding, own
from pipeline.exports.rows import EntityRow

DISPLAYS = {
    ResourceKind.STATEMENT: "Statement that is no finding of the patient",
    ResourceKind.HELD: "Entity that a person has rejected, or has to review first",
}


def statement(context: Context, entity: EntityRow) -> Json:
    """Return the Basic resource of a statement or of a held entity."""
    kind = placement(entity)
    resource = started("Basic", context, entity) | {
        "code": {"coding": [own("statement", kind, DISPLAYS[kind])], "text": entity.category},
        "subject": context.patient,
        "created": context.record.submitted_at.date().isoformat(),
    }
    resource["extension"].append(
        terms.extension("encounter", valueReference=terms.reference(entity.encounter_id))
    )
    if entity.attributes is not None:
        written = simplejson.dumps(entity.attributes, sort_keys=True)
        resource["extension"].append(terms.extension("attributes", valueString=written))
    if entity.code is not None:
        system = CODE_SYSTEMS.get(entity.code_system or "", "")
        chosen = coding(system, entity.code, entity.code_display)
        resource["extension"].append(terms.extension("code", valueCoding=chosen))
    return resource
