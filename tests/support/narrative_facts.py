"""Entities of the generator's texts and of the samples, as Pass 3 gets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from pipeline.clinical.facts import EntityFacts
from tests.support.generator.kinds import all_cases
from tests.support.generator.published import published

VISIT = date(2025, 1, 5)
_SAME = (
    "category", "name", "quote", "value", "unit", "reference_range", "abnormal_flag", "strength",
    "dose", "previous_dose", "route", "frequency", "status", "step", "reaction", "negated",
    "temporality", "certainty", "experiencer", "accepted",
)  # fmt: skip


def facts_of(
    rows: Sequence[Mapping[str, Any]],
    *,
    first: int = 1,
    visit: date | None = VISIT,
    visit_type: str | None = "office_visit",
) -> list[EntityFacts]:
    """Return the entities of published rows, with the keys e1, e2 and so on."""
    return [
        EntityFacts(
            key=f"e{number}",
            page=row["page_number"],
            start=row.get("char_start"),
            end=row.get("char_end"),
            entity_date=_date(row.get("entity_date")),
            review_flags=tuple(row.get("review_flags") or ()),
            encounter_date=visit,
            encounter_type=visit_type,
            **_copied(row),
        )
        for number, row in enumerate(rows, start=first)
    ]


def _copied(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in _SAME}


def _date(value: object) -> date | None:
    return date.fromisoformat(str(value)) if value else None


def generated_sets(number: int, seed: int) -> Iterator[tuple[str, list[EntityFacts]]]:
    """Yield the name and the entities of at least `number` generated texts."""
    for case in all_cases(number, seed):
        text = f"{case.heading}\n{case.text}" if case.heading else case.text
        facts = facts_of(published(text))
        if facts:
            yield f"{case.kind}:{case.seed}", facts
