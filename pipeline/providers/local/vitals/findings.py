"""Turn a vital sign's reading into an entity."""

from __future__ import annotations

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.vitals.vital_signs import Vital


def found_vital(
    reading: DocumentState,
    vital: Vital,
    span: tuple[int, int],
    name: str,
    value: str,
    unit: str | None,
) -> Finding:
    """Return the entity of one value at `span`."""
    assertion = reading.judge(*span)
    return Finding(
        category="vital",
        start=span[0],
        end=span[1],
        head_end=span[1],
        name=own_words(name).rstrip(".: "),
        value=own_words(value).rstrip("%"),
        unit=own_words(unit).rstrip(".") if unit else None,
        rule=f"vital.{vital.key.lower().replace(' ', '-')}.v1",
        engine_confidence=0.95,
        experiencer=assertion.experiencer if assertion.experiencer != "patient" else None,
        temporality="historical" if assertion.temporality == "historical" else None,
        zone=reading.zones.type_at(span[0]),
    )


def not_understood(
    reading: DocumentState, vital: Vital, name: str, start: int, end: int
) -> Finding:
    """Return a statement with an unexplained number: its name and its quote, without a value."""
    return Finding(
        category="vital",
        start=start,
        end=end,
        head_end=end,
        name=own_words(name).rstrip(".: "),
        rule=f"vital.{vital.key.lower().replace(' ', '-')}.not-understood.v1",
        engine_confidence=0.5,
        zone=reading.zones.type_at(start),
    )
