"""Structured measurements of printed values, for tests."""

from __future__ import annotations

from datetime import date

from pipeline.clinical.attributes import LabAttributes, VitalAttributes
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.structured import Printed
from pipeline.clinical.structurers import structured


def printed(
    category: str,
    name: str,
    value: str | None,
    unit: str | None = None,
    reference: str | None = None,
    flag: str | None = None,
    decimal_sign: str | None = None,
    **facts: object,
) -> Printed:
    """Return a measurement as the page prints it."""
    return Printed(
        facts=EntityFacts(
            key="e1",
            category=category,
            name=name,
            quote=value or "",
            page=1,
            entity_date=date(2024, 3, 5),
            **facts,  # type: ignore[arg-type]  # any field of the facts
        ),
        decimal_sign=decimal_sign,
        value=value,
        unit=unit,
        reference_range=reference,
        abnormal_flag=flag,
    )


def lab(
    name: str,
    value: str | None,
    unit: str | None = None,
    reference: str | None = None,
    flag: str | None = None,
    *,
    decimal_sign: str | None = None,
    **facts: object,
) -> tuple[LabAttributes, tuple[str, ...]]:
    """Return the attributes and the flags of a laboratory result."""
    found = structured(printed("lab", name, value, unit, reference, flag, decimal_sign, **facts))
    assert isinstance(found.attributes, LabAttributes)
    return found.attributes, found.flags


def vital(
    name: str, value: str | None, unit: str | None = None
) -> tuple[VitalAttributes, tuple[str, ...]]:
    """Return the attributes and the flags of a vital sign."""
    found = structured(printed("vital", name, value, unit))
    assert isinstance(found.attributes, VitalAttributes)
    return found.attributes, found.flags
