"""The Composition, section by section: a fixed reading of the document for a person.

The narratives hold only supported sentences. `Not yet reviewed` names every resource that a person
has not reviewed, or that is flagged, held or contradicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from pipeline.core.labels import counted
from pipeline.exports.fhir import terms
from pipeline.exports.fhir.context import Context
from pipeline.exports.fhir.provenance import ITSELF, instant
from pipeline.exports.fhir.terms import Json, derived_id, present, reference, tagged, text_of
from pipeline.exports.rows import EncounterRow, SentenceRow

_OPEN = "preliminary"


class Section(NamedTuple):
    """One section: its head, and the ids of the resources that its entries name."""

    head: Json
    entries: Iterable[UUID]


def head(context: Context) -> Json:
    """Return the Composition without its sections."""
    record = context.record
    title = "Extracted medical record"
    return {
        "resourceType": "Composition",
        "id": str(derived_id(record.id, "composition")),
        "meta": tagged(*record_tags(context)),
        "identifier": {"system": "urn:ietf:rfc:3986", "value": terms.urn(record.generation)},
        # FHIR: `final` is complete and verified.
        "status": "final" if record.is_review_closed and not record.is_incomplete else _OPEN,
        "type": {"text": title},
        "subject": context.patient,
        "date": instant(record.taken_at),
        "author": [reference(ITSELF.id)],
        "title": f"{title} – record incomplete" if record.is_incomplete else title,
    }


def record_tags(context: Context) -> tuple[str, ...]:
    """Return the tags of the whole document."""
    record = context.record
    incomplete = ("record-incomplete",) if record.is_incomplete else ()
    return incomplete if record.is_review_closed else (*incomplete, "not-reviewed")


def section(title: str, lines: Sequence[str], entries: Iterable[UUID] = ()) -> Section:
    """Return a section whose text is plain lines."""
    return Section(_head(title, "".join(f"<p>{_xhtml(line)}</p>" for line in lines)), entries)


def narratives(sentences: Iterable[SentenceRow]) -> Iterator[Section]:
    """Yield a section for each narrative; a sentence is followed by links to what it cites."""
    for index, group in groupby(sentences, lambda each: each.encounter_index):
        of = list(group)
        title = "The whole record" if index is None else f"Encounter {index}"
        body = "".join(f'<p id="s{each.id}">{_xhtml(each.text)}{_links(each)}</p>' for each in of)
        cited = dict.fromkeys(entity for each in of for entity in each.entity_ids)
        yield Section(_head(f"Narrative: {title}", body), cited)


def allergy_lines(encounters: Sequence[EncounterRow]) -> list[str]:
    """Return a line for each encounter that states that there is no known allergy."""
    return [
        f"Encounter {each.encounter_index} states that the patient has no known allergies."
        for each in encounters
        if each.no_known_allergies
    ]


def count_line(number: int, noun: str) -> str:
    """Return `3 resources.`."""
    return f"{counted(number, noun)}."


def _head(title: str, body: str) -> Json:
    div = f'<div xmlns="http://www.w3.org/1999/xhtml">{body}</div>'
    return present(title=title, text={"status": "generated", "div": div})


def _xhtml(text: str) -> str:
    return escape(text_of(text))


def _links(sentence: SentenceRow) -> str:
    return "".join(
        f' <a href="{terms.urn(entity)}">[{number}]</a>'
        for number, entity in enumerate(sentence.entity_ids, 1)
    )
