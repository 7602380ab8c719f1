"""Judge what the local engine and the stage publish for a generated case, attribute by attribute.

An entity is live if the console would show
the entity as a fact of the patient: accepted, without a flag, and not set aside by an assertion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from tests.support.generator.cases import Expected, GeneratedCase
from tests.support.generator.published import Row, published

ASIDE = {
    "negated": (True,),
    "temporality": ("historical", "planned"),
    "certainty": ("possible", "hypothetical"),
    "experiencer": ("family", "other"),
    "status": ("stopped", "on_hold", "planned", "not_started", "entered_in_error"),
}
"""Attribute → the values that set an entity aside."""


class Verdict(StrEnum):
    """How one attribute was read."""

    RIGHT = "right"
    MISSED = "missed"
    FLAGGED = "flagged"
    WRONG = "wrong and unflagged"


@dataclass(frozen=True)
class Judgement:
    """The rows that a case publishes, and the verdict on each attribute."""

    case: GeneratedCase
    rows: Sequence[Row]

    @classmethod
    def of(cls, case: GeneratedCase) -> Judgement:
        """Read and judge a case."""
        return cls(case=case, rows=published(f"{case.heading}\n{case.text}\n"))

    @cached_property
    def verdicts(self) -> Sequence[tuple[str, Verdict]]:
        """Each judged attribute, as `name.field`, with its verdict."""
        return tuple(self._verdicts())

    @property
    def counts(self) -> Counter[Verdict]:
        """The number of attributes with each verdict."""
        return Counter(verdict for _, verdict in self.verdicts)

    def _verdicts(self) -> Iterator[tuple[str, Verdict]]:
        for fact in self.case.expected:
            rows = [row for row in self.rows if _is_about(row, fact)]
            if not fact.is_current:
                yield f"not {fact.name}", _of_absent(fact, rows)
                continue
            yield fact.name, _of_name(fact, rows)
            for field, value in fact.fields.items():
                known = self._values(fact, field) | self._absent_values(fact, field)
                if verdict := _of_field(field, value, rows, known):
                    yield f"{fact.name}.{field}", verdict
        yield from self._surplus()

    def _surplus(self) -> Iterator[tuple[str, Verdict]]:
        """Find live values beside a right value, and live rows that no fact explains."""
        current = {(f.category, f.name): f for f in self.case.expected if f.is_current}
        for fact in current.values():
            live = [row for row in self.rows if _is_about(row, fact) and _is_live(row)]
            for field in ("value", "dose"):
                values = self._values(fact, field)
                told = {_plain(row[field]) for row in live if row[field]}
                extra = told - values - self._absent_values(fact, field)
                if values & told:
                    yield from ((f"{fact.name}.{field}", Verdict.WRONG) for _ in extra)

        for row in filter(_is_live, self.rows):
            # A case states all facts of its categories.
            same = [fact for fact in self.case.expected if fact.category == row["category"]]
            if same and not any(_is_named(row, fact) for fact in same):
                yield f"{row['category']} {row['name']}", Verdict.WRONG
            for fact in current.values():
                if _is_named(row, fact) and _is_misplaced(row, fact):
                    yield f"{fact.name} as {row['category']}", Verdict.WRONG

    def _values(self, fact: Expected, field: str) -> set[str]:
        """Return the right values of a field; each step of a taper has one."""
        return self._stated(fact, field, is_current=True)

    def _absent_values(self, fact: Expected, field: str) -> set[str]:
        """Return the values, such as an old dose, whose own expectation counts a wrong reading."""
        return self._stated(fact, field, is_current=False)

    def _stated(self, fact: Expected, field: str, *, is_current: bool) -> set[str]:
        return {
            _plain(other.fields[field])
            for other in self.case.expected
            if other.is_current is is_current and other.name == fact.name and field in other.fields
        }


def _is_about(row: Row, fact: Expected) -> bool:
    return row["category"] == fact.category and _is_named(row, fact)


def _is_named(row: Row, fact: Expected) -> bool:
    return bool(re.search(fact.name, row["name"].lower()))


def _is_misplaced(row: Row, fact: Expected) -> bool:
    """Whether a row has another category; a condition can be a symptom as well."""
    same = {"condition", "symptom"}
    return row["category"] != fact.category and not same.issuperset(
        {row["category"], fact.category}
    )


def _is_flagged(row: Row) -> bool:
    return bool(row["review_flags"]) or not row["accepted"]


def _is_live(row: Row) -> bool:
    return not _is_flagged(row) and not any(row[name] in values for name, values in ASIDE.items())


def _of_absent(fact: Expected, rows: Sequence[Row]) -> Verdict:
    said = [row for row in rows if all(_says(row, field, v) for field, v in fact.fields.items())]
    if any(_is_live(row) for row in said):
        return Verdict.WRONG
    return Verdict.FLAGGED if any(_is_flagged(row) for row in said) else Verdict.RIGHT


def _of_name(fact: Expected, rows: Sequence[Row]) -> Verdict:
    if any(_is_live(row) and _has_foreign_number(row, fact) for row in rows):
        return Verdict.WRONG
    expects_aside = any(fact.fields.get(name) in values for name, values in ASIDE.items())
    if any(_is_live(row) != expects_aside and not _is_flagged(row) for row in rows):
        return Verdict.RIGHT
    if any(_is_flagged(row) for row in rows):
        return Verdict.FLAGGED
    return Verdict.WRONG if rows else Verdict.MISSED


def _has_foreign_number(row: Row, fact: Expected) -> bool:
    """Whether the name took over a number from another cell of the row."""
    return bool(re.search(r"\d", re.sub(fact.name, "", row["name"].lower())))


def _of_field(
    field: str, value: str | bool, rows: Sequence[Row], known: set[str]
) -> Verdict | None:
    """Judge one field; an empty `value` means that the text states none.

    Values in `known` belong to other expectations of the case.
    """
    if isinstance(value, bool):
        # A missing assertion is wrong; the expectation that no live row exists counts that.
        is_right = any(row["accepted"] and row[field] is value for row in rows)
        return Verdict.RIGHT if is_right else Verdict.MISSED
    # A lone asterisk can be a footnote or a flag; both readings are fair.
    told = [row for row in rows if row[field] and _plain(row[field])]
    live = [row for row in told if _is_live(row)]
    if not value:
        return Verdict.WRONG if live else None
    if any(_says(row, field, value) for row in live):
        return Verdict.RIGHT
    if any(_plain(row[field]) not in known for row in live):
        return Verdict.WRONG
    return Verdict.FLAGGED if any(_is_flagged(row) for row in rows) else Verdict.MISSED


def _says(row: Row, field: str, value: str | bool) -> bool:
    said = row[field]
    if isinstance(value, bool):
        return bool(said) is value
    return said is not None and _plain(said) == _plain(value)


def _plain(value: object) -> str:
    """Return a value without spaces, brackets, marks and thousands separators."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", str(value).lower())
    text = re.sub(r"(?<=\d)\s*(?:–|to)\s*(?=\d)", "-", text)
    return re.sub(r"[\s()\[\]*]", "", text)
