"""Expectations about a record: what must be published, and what must not be published.

`want` is `present`, `absent`, `not`, `no_known_allergies`, `date` or `not_completed_silently`. The
other keys of an expectation are a category, a pattern of the name, and columns of the entity;
`…_has` means "contains".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.attributes import COLUMNS, AttributeOutcome
from evaluation.published import Row
from pipeline.providers.schemas import NOT_TAKEN

Expectation = Mapping[str, Any]
Judged = tuple[str, str, AttributeOutcome]
"""Category, attribute and outcome."""
WANTS = ("present", "absent", "not", "no_known_allergies", "date", "not_completed_silently")
ASIDE: dict[str, tuple[str | bool, ...]] = {
    "negated": (True,),
    "temporality": ("historical",),
    "certainty": ("possible", "hypothetical"),
    "experiencer": ("family", "other"),
    "status": tuple(NOT_TAKEN),
}
"""Assertions that keep an entity from being a current fact of the patient."""
_SILENT = {"NO_ENTITIES_FOUND"}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a record would publish."""

    rows: Sequence[Row] = field(default=(), repr=False)
    no_known_allergies: tuple[bool | None, ...] = ()
    dates: frozenset[str] = frozenset()
    warnings: frozenset[str] = frozenset()
    refusal: str = ""
    """Code of the error with which the record failed; empty if it completed."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One expectation with its result."""

    expectation: Expectation = field(repr=False)
    holds: bool
    outcomes: tuple[Judged, ...]
    """Each judged attribute."""

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong and unflagged."""
        return any(outcome is AttributeOutcome.WRONG for *_, outcome in self.outcomes)


def check(expectation: Expectation, reading: Reading) -> Checked:
    """Judge one expectation."""
    outcomes = tuple(_outcomes(expectation, reading))
    return Checked(expectation=expectation, holds=_holds(expectation, reading), outcomes=outcomes)


def _holds(want: Expectation, reading: Reading) -> bool:
    live = [row for row in reading.rows if row["accepted"]]
    match want["want"]:
        case "present":
            return any(_fits(row, want) for row in live)
        case "absent":
            return not any(_fits(row, want) and not _is_aside(row) for row in live)
        case "not":
            return not any(_fits(row, want) for row in live)
        case "no_known_allergies":
            return _says_no_allergies(want, reading)
        case "date":
            return want["value"] in reading.dates
        case _:
            return bool(reading.refusal or reading.warnings - _SILENT)


def _outcomes(want: Expectation, reading: Reading) -> Iterator[Judged]:
    kind = want["want"]
    if kind == "present":
        yield from _of_present(want, reading.rows)
        return
    held = _holds(want, reading)
    right_or_wrong = AttributeOutcome.RIGHT if held else AttributeOutcome.WRONG
    if kind == "date":
        missed = AttributeOutcome.MISSED if not reading.dates else AttributeOutcome.WRONG
        yield "encounter", "date", AttributeOutcome.RIGHT if held else missed
    elif kind == "no_known_allergies":
        yield "allergy", "no known allergies", right_or_wrong
    elif kind == "not_completed_silently":
        yield "record", "read or refused", right_or_wrong
    else:
        column = next((_column(key) for key in _columns(want)), "name")
        is_flagged = held and any(_fits(row, want) and _is_flagged(row) for row in reading.rows)
        outcome = AttributeOutcome.FLAGGED if is_flagged else right_or_wrong
        yield want["category"], COLUMNS.get(column, column), outcome


def _of_present(want: Expectation, rows: Sequence[Row]) -> Iterator[Judged]:
    category = want["category"]
    named = [row for row in rows if _is_named(row, want)]
    flagged = [row for row in named if _is_flagged(row)]
    without = AttributeOutcome.FLAGGED if flagged else AttributeOutcome.MISSED
    is_published = any(not _is_flagged(row) for row in named)
    yield category, "name", AttributeOutcome.RIGHT if is_published else without
    whole = [row for row in named if row["accepted"] and _fits(row, want)]
    for key in _columns(want):
        column = _column(key)
        # The other columns of a row that fits the whole expectation are its own.
        told = [row for row in whole or named if _fits_column(row, key, want[key])]
        unflagged = [row for row in named if not _is_flagged(row) and not _is_aside(row)]
        if any(not _is_flagged(row) for row in told):
            outcome = AttributeOutcome.RIGHT
        elif any(_says_otherwise(row, column, want[key]) for row in unflagged):
            outcome = AttributeOutcome.WRONG
        else:
            outcome = without
        yield category, COLUMNS.get(column, column), outcome


def _says_otherwise(row: Row, column: str, value: object) -> bool:
    """Whether a live row states another value; a lost assertion is wrong too."""
    return isinstance(value, bool) or row.get(column) not in (None, "")


def _columns(want: Expectation) -> list[str]:
    return [key for key in want if key not in ("want", "category", "name")]


def _column(key: str) -> str:
    return key.removesuffix("_has")


def _is_named(row: Row, want: Expectation) -> bool:
    is_category = row["category"] == want["category"]
    return is_category and bool(re.search(want["name"], row["name"] or "", re.I))


def _fits(row: Row, want: Expectation) -> bool:
    return _is_named(row, want) and all(_fits_column(row, k, want[k]) for k in _columns(want))


def _fits_column(row: Row, key: str, value: object) -> bool:
    if key.endswith("_has"):
        return (_plain(value) or "") in (_plain(row.get(_column(key))) or "")
    if isinstance(value, bool):
        return _asserts(row, key) is value
    return _plain(row.get(key)) == _plain(value)


def _asserts(row: Row, key: str) -> bool | None:
    if key == "family":
        return row["experiencer"] in ASIDE["experiencer"]
    if key == "historical":
        return bool(row["temporality"] == "historical")
    if key == "hypothetical":
        return row["certainty"] in ASIDE["certainty"]
    found: bool | None = row.get(key)
    return found


def _is_flagged(row: Row) -> bool:
    return bool(row["review_flags"]) or not row["accepted"]


def _is_aside(row: Row) -> bool:
    return _is_flagged(row) or any(row.get(field) in values for field, values in ASIDE.items())


def _says_no_allergies(want: Expectation, reading: Reading) -> bool:
    wanted = want.get("value", True)
    said = reading.no_known_allergies or (None,)
    return any(each is wanted or (each is not True and wanted is False) for each in said)


def _plain(value: object) -> str | None:
    return None if value is None else re.sub(r"\s+", "", str(value)).lower()
