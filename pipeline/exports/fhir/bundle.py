"""The Bundle as a stream of JSON text, entry by entry, in the order of the database's rows.

Type `document`, because a Composition comes first and everything else hangs on it. Two runs over
the entities are needed: the Composition names all resources before the first of them is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from uuid import UUID

import simplejson

from pipeline.exports.fhir import composition, frame, terms
from pipeline.exports.fhir.acts import immunization, procedure
from pipeline.exports.fhir.allergies import allergy
from pipeline.exports.fhir.composition import Section, section
from pipeline.exports.fhir.conditions import condition, family_history
from pipeline.exports.fhir.context import Context, entry
from pipeline.exports.fhir.medications import medication
from pipeline.exports.fhir.observations import observation
from pipeline.exports.fhir.placement import ResourceKind, placement
from pipeline.exports.fhir.provenance import (
    ITSELF,
    Engine,
    device,
    engines_of,
    instant,
    provenance,
    provenance_of_encounter,
)
from pipeline.exports.fhir.statements import statement
from pipeline.exports.fhir.terms import Json
from pipeline.exports.rows import EntityRow
from pipeline.exports.source import RecordSource

_FINDINGS: dict[str, Callable[[Context, EntityRow], Json]] = {
    "condition": condition,
    "symptom": condition,
    "medication": medication,
    "lab": observation,
    "vital": observation,
    "allergy": allergy,
    "immunization": immunization,
    "procedure": procedure,
}
_TITLES = {
    ResourceKind.FINDING: "Findings",
    ResourceKind.FAMILY_HISTORY: "Family history",
    ResourceKind.STATEMENT: "Statements that are no findings of the patient",
    ResourceKind.HELD: "Rejected, or held back until a person has reviewed them",
}
_OPEN = "Not yet reviewed"


class _Ids:
    """A long list of ids, 16 bytes each."""

    def __init__(self) -> None:
        self._packed = bytearray()

    def __len__(self) -> int:
        return len(self._packed) // 16

    def __iter__(self) -> Iterator[UUID]:
        for at in range(0, len(self._packed), 16):
            yield UUID(bytes=bytes(self._packed[at : at + 16]))

    def add(self, one: UUID) -> None:
        """Append an id."""
        self._packed += one.bytes


def bundle(source: RecordSource) -> Iterator[str]:
    """Yield the text of the Bundle in pieces of at most some kilobytes, but for long narratives."""
    record = source.record
    context = Context(record=record, contradicted=_contradicted(source))
    groups, engines = _first_run(context, source.entities())
    top = {
        "resourceType": "Bundle",
        "id": str(record.generation),
        "meta": terms.tagged(*composition.record_tags(context)),
        "identifier": {"system": "urn:ietf:rfc:3986", "value": terms.urn(record.generation)},
        "type": "document",
        "timestamp": instant(record.taken_at),
    }
    yield f'{_opened({k: v for k, v in top.items() if v})},"entry":['
    yield from _composition(context, source, groups)
    for resource in _resources(context, source, engines):
        yield f",\n{_text(entry(resource))}"
    yield "]}\n"


def resource_of(context: Context, entity: EntityRow) -> Json:
    """Return the one resource of an entity."""
    kind = placement(entity)
    if kind is ResourceKind.FAMILY_HISTORY:
        return family_history(context, entity)
    if kind is ResourceKind.FINDING:
        return _FINDINGS[entity.category](context, entity)
    return statement(context, entity)


def _contradicted(source: RecordSource) -> frozenset[UUID]:
    return frozenset(
        UUID(str(entity))
        for item in source.list_items()
        for each in item.contradictions
        for entity in each["entity_ids"]
    )


def _first_run(
    context: Context, entities: Iterable[EntityRow]
) -> tuple[dict[str, _Ids], set[Engine]]:
    """Return the ids of the entities by section, and the engines."""
    groups: defaultdict[str, _Ids] = defaultdict(_Ids)
    engines = {ITSELF}
    for each in entities:
        groups[_TITLES[placement(each)]].add(each.id)
        if context.is_open(each):
            groups[_OPEN].add(each.id)
        engines.update(engines_of(context.record, each).values())
    return groups, engines


def _resources(context: Context, source: RecordSource, engines: set[Engine]) -> Iterator[Json]:
    record = context.record
    yield frame.patient(record)
    yield frame.document(record)
    yield from map(device, sorted(engines))
    if outcome := frame.outcome(record):
        yield outcome
    for row in record.encounters:
        yield frame.encounter(record, row)
        yield provenance_of_encounter(context, row)
    for each in source.entities():
        yield resource_of(context, each)
        yield provenance(context, each)
    for item in source.list_items():
        yield frame.record_list(context, item)
        yield from frame.issues_of(context, item)


def _composition(context: Context, source: RecordSource, groups: dict[str, _Ids]) -> Iterator[str]:
    resource = composition.head(context)
    yield f'{{"fullUrl":"urn:uuid:{resource["id"]}","resource":'
    yield f'{_opened({k: v for k, v in resource.items() if v})},"section":['
    separator = ""
    for each in _sections(context, source, groups):
        yield separator
        yield from _section(each)
        separator = ",\n"
    yield "]}}"


def _sections(context: Context, source: RecordSource, groups: dict[str, _Ids]) -> Iterator[Section]:
    record = context.record
    outcome = frame.outcome(record)
    about = [*record.notices, *record.warnings_in_words]
    if outcome:
        yield section("About this record", about, [UUID(outcome["id"])])
    yield from composition.narratives(source.sentences())
    yield section(
        "Source and encounters",
        [f"{len(record.encounters)} encounters in one document."],
        chain([record.id], (each.id for each in record.encounters)),
    )
    for kind, title in frame.LIST_TITLES.items():
        lines = composition.allergy_lines(record.encounters) if kind == "allergy" else []
        listed = _Ids()
        for item in source.list_items():
            if item.kind == kind:
                listed.add(item.id)
        if lines or listed:
            yield section(title, [*lines, f"{len(listed)} in the list."], listed)
    yield from _contradictions(context, source)
    for title in (*_TITLES.values(), _OPEN):
        if title in groups:
            found = groups[title]
            yield section(title, [composition.count_line(len(found), "resource")], found)


def _contradictions(context: Context, source: RecordSource) -> Iterator[Section]:
    found = [issue for item in source.list_items() for issue in frame.issues_of(context, item)]
    if found:
        lines = [each["detail"] for each in found]
        yield section("Contradictions", lines, [UUID(each["id"]) for each in found])


def _section(of: Section) -> Iterator[str]:
    yield _opened(of.head)
    separator = ',"entry":['
    for each in of.entries:
        yield f'{separator}{{"reference":"{terms.urn(each)}"}}'
        separator = ","
    yield "}" if separator != "," else "]}"


def _opened(of: Json) -> str:
    """Return the text of an object without its closing brace."""
    return _text(of)[:-1]


def _text(of: Json) -> str:
    return str(simplejson.dumps(of, use_decimal=True, ensure_ascii=False, separators=(",", ":")))
