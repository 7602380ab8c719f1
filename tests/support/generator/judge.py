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

from tests.support.generator.cases import Expected, FactKind, GeneratedCase, Said
from tests.support.generator.published import Row, published, read_page

ASIDE: dict[str, tuple[str | bool, ...]] = {
    "negated": (True,),
    "temporality": ("historical", "planned"),
    "certainty": ("possible", "hypothetical"),
    "experiencer": ("family", "other"),
    "status": ("stopped", "on_hold", "planned", "not_started", "entered_in_error"),
}
"""Assertions that keep an entity from being a current fact of the patient."""


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
    page_text: str = ""
    """The text that the reader of PDFs returned; empty for a case that skipped the reader."""

    @classmethod
    def of(cls, case: GeneratedCase) -> Judgement:
        """Read and judge a case."""
        return cls(case=case, rows=published(f"{case.heading}\n{case.text}\n"))

    @classmethod
    def of_page(cls, case: GeneratedCase, page_text: str) -> Judgement:
        """Judge a case by the text of its PDF page."""
        return cls(case=case, rows=read_page(page_text), page_text=page_text)

    @property
    def name(self) -> str:
        """The name that the report prints."""
        name = f"{self.case.kind}:{self.case.seed}"
        return f"{name} (pdf)" if self.page_text else name

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
            if fact.kind is FactKind.FREE:
                continue
            if fact.kind is FactKind.ABSENT:
                yield f"not {fact.name}", _of_absent(fact, rows)
            elif fact.kind is FactKind.NO_VALUE:
                yield f"{fact.name}.no value", _of_no_value(fact, rows)
            elif fact.kind is FactKind.ASIDE:
                yield from _of_aside(fact, rows)
            else:
                yield fact.name, _of_name(fact, [row for row in rows if not self._is_earlier(row)])
                for field, value in fact.fields.items():
                    known = self._values(fact, field) | self._absent_values(fact, field)
                    if verdict := _of_field(
                        field, value, _same_row(fact, field, rows), fact, known
                    ):
                        yield f"{fact.name}.{field}", verdict
        yield from self._surplus()

    def _is_earlier(self, row: Row) -> bool:
        """Whether a row is set aside as the case expects, such as an earlier value or dose."""
        return _is_aside(row) and any(
            _says(row, field, value)
            for fact in self.case.expected
            if fact.kind is FactKind.ABSENT and _is_about(row, fact)
            for field, value in fact.fields.items()
            if field in ("value", "dose")
        )

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
            same = [fact for fact in self.case.expected if _is_category(row, fact)]
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
            _plain(value)
            for other in self.case.expected
            if other.is_current is is_current and other.name == fact.name and field in other.fields
            for value in _alternatives(other.fields[field])
        }


def _is_about(row: Row, fact: Expected) -> bool:
    return _is_category(row, fact) and _is_named(row, fact)


def _is_category(row: Row, fact: Expected) -> bool:
    """Whether a row has the fact's category; a condition can be a symptom as well."""
    same = {"condition", "symptom"}
    return row["category"] == fact.category or same.issuperset({row["category"], fact.category})


def _is_named(row: Row, fact: Expected) -> bool:
    return bool(re.search(fact.name, row["name"].lower()))


def _is_misplaced(row: Row, fact: Expected) -> bool:
    return not _is_category(row, fact)


def _is_flagged(row: Row) -> bool:
    return bool(row["review_flags"]) or not row["accepted"]


def _is_aside(row: Row, *, may_be_earlier: bool = False) -> bool:
    judged = ASIDE.keys() - ({"temporality"} if may_be_earlier else set())
    return any(row.get(field) in ASIDE[field] for field in judged)


def _is_live(row: Row) -> bool:
    return not _is_flagged(row) and not _is_aside(row)


def _counts(row: Row, fact: Expected) -> bool:
    """Whether a row can state a fact unflagged."""
    may_be_earlier = fact.kind is FactKind.ANY_TIME
    return not _is_flagged(row) and not _is_aside(row, may_be_earlier=may_be_earlier)


def _of_absent(fact: Expected, rows: Sequence[Row]) -> Verdict:
    said = [row for row in rows if all(_says(row, field, v) for field, v in fact.fields.items())]
    if any(_is_live(row) for row in said):
        return Verdict.WRONG
    return Verdict.FLAGGED if any(_is_flagged(row) for row in said) else Verdict.RIGHT


def _of_no_value(fact: Expected, rows: Sequence[Row]) -> Verdict:
    told = [row for row in rows if row["value"] and not _says(row, "value", fact.fields["value"])]
    if any(_is_live(row) for row in told):
        return Verdict.WRONG
    return Verdict.FLAGGED if any(_is_flagged(row) for row in rows) else Verdict.RIGHT


def _of_aside(fact: Expected, rows: Sequence[Row]) -> Iterator[tuple[str, Verdict]]:
    """Judge the attributes of an entity that is set aside; a live row is counted elsewhere."""
    aside = [row for row in rows if not _is_flagged(row) and _is_aside(row)]
    without = Verdict.FLAGGED if any(_is_flagged(row) for row in rows) else Verdict.MISSED
    yield fact.name, Verdict.RIGHT if aside else without
    for field, value in fact.fields.items():
        if any(_says(row, field, value) for row in aside):
            yield f"{fact.name}.{field}", Verdict.RIGHT
        elif any(row.get(field) not in (None, False) for row in aside):
            yield f"{fact.name}.{field}", Verdict.WRONG
        else:
            yield f"{fact.name}.{field}", without


def _of_name(fact: Expected, rows: Sequence[Row]) -> Verdict:
    if any(_is_live(row) and _has_foreign_number(row, fact) for row in rows):
        return Verdict.WRONG
    if any(_counts(row, fact) for row in rows):
        return Verdict.RIGHT
    if any(_is_flagged(row) for row in rows):
        return Verdict.FLAGGED
    return Verdict.WRONG if rows else Verdict.MISSED


def _has_foreign_number(row: Row, fact: Expected) -> bool:
    """Whether the name took over a number from another cell of the row."""
    rest = re.sub(fact.name, "", row["name"].lower())
    return bool(re.search(r"(?<![a-z\d-])\d", rest))


def _same_row(fact: Expected, field: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that have the fact's own value or dose, if there are such rows."""
    for key in ("value", "dose"):
        if key in fact.fields and key != field:
            mine = [row for row in rows if _says(row, key, fact.fields[key])]
            return mine or rows
    return rows


def _of_field(
    field: str, value: Said, rows: Sequence[Row], fact: Expected, known: set[str]
) -> Verdict | None:
    """Judge one field; an empty `value` means that the text states none.

    Values in `known` belong to other expectations of the case.
    """
    # A lone asterisk can be a footnote or a flag; both readings are fair.
    told = [row for row in rows if row.get(field) and _plain(row[field])]
    live = [row for row in told if _counts(row, fact)]
    if not value:
        return Verdict.WRONG if live else None
    if any(_says(row, field, value) for row in live):
        return Verdict.RIGHT
    if any(_plain(row[field]) not in known for row in live):
        return Verdict.WRONG
    if "" in _alternatives(value) and any(_counts(row, fact) for row in rows):
        return Verdict.RIGHT
    return Verdict.FLAGGED if any(_is_flagged(row) for row in rows) else Verdict.MISSED


def _alternatives(value: Said) -> tuple[str | bool, ...]:
    return value if isinstance(value, tuple) else (value,)


def _says(row: Row, field: str, value: Said) -> bool:
    said = row.get(field)
    if isinstance(value, bool):
        return bool(said) is value
    return any(_plain(said or "") == _plain(each) for each in _alternatives(value))


SIGNS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹µμ≤≥–", "0123456789uu<>-")


def _plain(value: object) -> str:
    """Return a value without spaces, brackets, marks and thousands separators."""
    text = str(value).lower().replace("≤", "<=").replace("≥", ">=").translate(SIGNS)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"(?<=\d)\s*(?:-|to)\s*(?=\d)", "-", text)
    return re.sub(r"[\s()\[\]*^]", "", text).rstrip(".")
