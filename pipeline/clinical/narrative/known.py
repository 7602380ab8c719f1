"""What a cited entity states: its names, numbers, dates, words and assertions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative import timing
from pipeline.clinical.narrative.amounts import (
    ORDINAL_JOIN,
    StatedAmount,
    amounts_in,
    unit_of,
    whole_amount,
)
from pipeline.clinical.narrative.name_forms import other_orders
from pipeline.clinical.narrative.printed_dates import iso_dates
from pipeline.clinical.narrative.quoted_numbers import duration
from pipeline.clinical.narrative.synonyms import same_names
from pipeline.clinical.narrative.text import tokens_of, words_of
from pipeline.clinical.narrative.undoubted import undoubted

_NOT_CERTAIN = {"unconfirmed", "provisional", "differential"}
_NAME_ENDS = {"allergy", "allergies", "vaccine", "vaccination", "immunization"}
_DOUBTS = {
    "no", "not", "denies", "denied", "without", "negative", "never", "none", "possible", "probable",
    "suspected", "likely", "if", "risk", "versus", "vs", "rule", "absent",
}  # fmt: skip
"""Words of a quote that may deny or doubt its other words."""


class NumberRole(StrEnum):
    """What a number of an entity means."""

    VALUE = "value"
    CONVERTED = "converted"
    RANGE = "range"
    DOSE = "dose"
    STRENGTH = "strength"
    PREVIOUS = "previous"
    DAILY = "daily"
    TIMING = "timing"
    ORDINAL = "ordinal"
    DURATION = "duration"


@dataclass(frozen=True, kw_only=True)
class CitedEntity:
    """One cited entity, ready for comparison with a sentence."""

    facts: EntityFacts
    names: frozenset[tuple[str, ...]]
    """The names as words."""
    printed_name: tuple[str, ...]
    """The tokens of the name, with its marks."""
    amounts: tuple[tuple[NumberRole, StatedAmount], ...]
    texts: frozenset[tuple[str, ...]]
    """Tokens of the attributes that are words: a result, a reaction, an indication."""
    frequencies: frozenset[str]
    routes: frozenset[str]
    own_dates: tuple[str, ...]
    """Dates of the fact, in ISO 8601, at day, month or year precision."""
    starts: tuple[str, ...]
    stops: tuple[str, ...]
    vocabulary: frozenset[str]
    """All words of the entity."""
    own_words: frozenset[str]
    """The words without those of the quote, which may contain other names."""
    quote: tuple[str, ...]

    @property
    def takes_amounts(self) -> bool:
        """Whether the entity can have numbers."""
        return self.facts.category in ("lab", "vital", "medication", "immunization")

    @property
    def units(self) -> Iterator[str]:
        """The units of the entity's numbers."""
        return (amount.unit for _, amount in self.amounts if amount.unit)

    @property
    def status(self) -> str | None:
        """The status of a medication."""
        if self.facts.category != "medication":
            return None
        found = self.attribute("status") or self.facts.status
        return str(found) if found else None

    @property
    def is_denied(self) -> bool:
        """Whether the entity states that something is not there."""
        if self.attribute("verification_status") == "refuted":
            return True
        return self.facts.negated is True or self.attribute("status") == "not-done"

    @property
    def is_before_the_visit(self) -> bool:
        """Whether every date of the fact is before the day of its encounter."""
        visit = self.facts.encounter_date
        if visit is None or not self.own_dates:
            return False
        return all(each < visit.isoformat()[: len(each)] for each in self.own_dates)

    @property
    def certainty(self) -> str:
        """`possible`, `hypothetical`, or `certain` for everything else."""
        if self.facts.certainty in ("possible", "hypothetical"):
            return self.facts.certainty
        unsure = self.attribute("verification_status") in _NOT_CERTAIN
        return "possible" if unsure else "certain"

    @property
    def flags(self) -> frozenset[str]:
        """`high`, `low`, `normal`, `abnormal`, `critical`: what the entity states of its value."""
        return stated_flags(self.facts)

    def attribute(self, name: str) -> Any:
        """Return an attribute of Pass 2."""
        return self.facts.attributes.get(name)

    def quotes(self, words: tuple[str, ...]) -> bool:
        """Return whether the quote or the attributes contain all the words."""
        quoted = {_one(word) for word in self.quote}
        return all(_one(word) in quoted or _one(word) in self.vocabulary for word in words)

    def has(self, words: tuple[str, ...]) -> bool:
        """Return whether the entity's own words contain all the words."""
        return all(_one(word) in self.vocabulary for word in words)


def known_of(facts: EntityFacts) -> CitedEntity:
    """Return what an entity states, without attributes that wait for a reviewer."""
    facts = undoubted(facts)
    attributes = facts.attributes
    amounts = tuple(_amounts(facts))
    texts = {tuple(t.text for t in tokens_of(text)) for text in _texts(facts)} - {()}
    timing_printed = _printed(attributes.get("timing"))
    results = _result_words(facts)
    quote = "" if _DOUBTS & set(words_of(facts.quote)) else facts.quote
    spoken = [facts.name, facts.code_display or "", facts.reaction or "", *_strings(attributes)]
    # A word of a unit is read with its number only: "mmol" alone is no word about sodium.
    results |= _unit_words(facts) - {_one(word) for word in words_of(facts.name)}
    own_words = frozenset(_one(word) for text in spoken for word in words_of(text)) - results
    return CitedEntity(
        facts=facts,
        names=frozenset(_names(facts)),
        printed_name=tuple(t.text for t in tokens_of(facts.name)),
        amounts=amounts,
        texts=frozenset(texts),
        frequencies=timing.frequencies_in(facts.frequency)
        | timing.frequencies_in(timing_printed)
        | _daily(attributes.get("timing")),
        routes=_routes(facts),
        own_dates=tuple(
            iso_dates(
                facts.entity_date,
                *(attributes.get(each) for each in ("effective", "performed", "occurrence")),
            )
        ),
        starts=tuple(iso_dates(attributes.get("start"), attributes.get("onset"))),
        stops=tuple(iso_dates(attributes.get("stop"), attributes.get("abatement"))),
        vocabulary=own_words | frozenset(_one(word) for word in words_of(quote)) - results,
        own_words=own_words,
        quote=words_of(facts.quote),
    )  # fmt: skip


def stated_flags(facts: EntityFacts) -> frozenset[str]:
    """Return what an undoubted entity states of its value, as `CitedEntity.flags`."""
    computed = _flags_of(facts.attributes.get("computed_flag"))
    printed = _flags_of(facts.attributes.get("printed_flag") or facts.abnormal_flag)
    if computed and printed and not computed & printed - {"abnormal"}:
        return frozenset({"abnormal"}) & computed & printed
    return computed | printed


def singular(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without the ending of a plural."""
    return tuple(_one(word) for word in words)


# The words of a record are few, and each of its sentences asks for them.
@lru_cache(maxsize=8_192)
def _one(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word.removesuffix("'")


def _names(facts: EntityFacts) -> Iterator[tuple[str, ...]]:
    printed = [facts.name]
    if facts.category in ("lab", "vital", "medication"):
        # "no chest pain" would say more than a denied "chest pain (exertional)".
        printed.append(re.sub(r"\([^)]*\)", " ", facts.name))
    printed += [
        str(value)
        for key in ("ingredient", "substance", "product")
        if (value := facts.attributes.get(key))
    ]
    if facts.code and facts.code_display:
        printed.append(facts.code_display)
    for name in printed:
        words = singular(words_of(name))
        if not words:
            continue
        for same in same_names(words_of(name)) | same_names(words):
            yield singular(same)
        yield words
        ends = len(words) > 1 and words[-1] in _NAME_ENDS
        if ends and facts.category in ("allergy", "immunization"):
            yield words[:-1]
    yield from (singular(words) for words in other_orders(facts))


def _amounts(facts: EntityFacts) -> Iterator[tuple[NumberRole, StatedAmount]]:
    attributes = facts.attributes
    if facts.category == "medication":
        for role, printed in (
            (NumberRole.DOSE, facts.dose),
            (NumberRole.STRENGTH, facts.strength),
            (NumberRole.PREVIOUS, facts.previous_dose),
        ):
            yield from ((role, amount) for amount in _each(printed, None))
        for role, key in (
            (NumberRole.DOSE, "dose"),
            (NumberRole.PREVIOUS, "previous_dose"),
            (NumberRole.DAILY, "daily_dose"),
        ):
            yield from ((role, amount) for amount in _quantity(attributes.get(key)))
        for strength in attributes.get("strength") or ():
            yield from ((NumberRole.STRENGTH, amount) for amount in _quantity(strength))
        yield from ((NumberRole.TIMING, amount) for amount in amounts_in(facts.frequency))
        lasts = duration(facts)
        if lasts is not None:
            yield NumberRole.DURATION, lasts
    elif facts.category in ("lab", "vital"):
        yield from ((NumberRole.VALUE, amount) for amount in _each(facts.value, facts.unit))
        yield from ((NumberRole.VALUE, amount) for amount in _quantity(attributes.get("value")))
        yield from ((NumberRole.CONVERTED, a) for a in _converted(attributes.get("converted")))
        yield from ((NumberRole.RANGE, a) for a in amounts_in(facts.reference_range))
        unit = unit_of(facts.unit)
        if unit:
            for a in amounts_in(f"{facts.reference_range or ''} {facts.unit}"):
                yield NumberRole.RANGE, a
    elif facts.category == "immunization":
        number = attributes.get("dose_number")
        if number is not None:
            for join in ("", ORDINAL_JOIN):
                text = str(number)
                yield NumberRole.ORDINAL, StatedAmount(printed=text, first=text, join=join)


def _routes(facts: EntityFacts) -> frozenset[str]:
    """Return the keys of the routes; a subcutaneous drug is also an injected drug."""
    printed = (facts.route, facts.attributes.get("route"), facts.attributes.get("printed_route"))
    found = frozenset[str]().union(*(timing.routes_in(str(each)) for each in printed if each))
    is_injected = bool(found & {"subcutaneous", "intramuscular"})
    return found | {"injected"} if is_injected else found


def _daily(value: object) -> frozenset[str]:
    """Return the key of `daily` for what is taken once a day at a time of the day."""
    if not isinstance(value, Mapping) or value.get("as_needed") or value.get("count"):
        return frozenset()
    parts = [value.get(name) for name in ("frequency", "period", "period_unit")]
    several = value.get("frequency_max") or value.get("period_max")
    is_daily = [str(part) for part in parts] == ["1", "1", "d"] and not several
    return frozenset({"1/d"}) if is_daily else frozenset()


def _each(printed: str | None, unit: str | None) -> Iterator[StatedAmount]:
    whole = whole_amount(printed, unit)
    if whole is not None:
        yield whole


def _quantity(value: object) -> Iterator[StatedAmount]:
    if not isinstance(value, Mapping):
        return
    printed = whole_amount(value.get("printed"), value.get("printed_unit"))
    if printed is not None:
        yield printed
    number = value.get("number")
    if number is None:
        return
    high = value.get("high")
    text = str(number)
    for unit in {unit_of(value.get("unit")), unit_of(value.get("printed_unit"))} - {""} or {""}:
        yield StatedAmount(
            printed=text,
            first=text.removeprefix("-"),
            negative=text.startswith("-"),
            second=str(high) if high is not None else "",
            join="-" if high is not None else "",
            comparator=str(value.get("comparator") or ""),
            unit=unit,
        )


def _converted(value: object) -> Iterator[StatedAmount]:
    """Yield a converted number in its own unit; `printed` holds the number before conversion."""
    if isinstance(value, Mapping):
        yield from _quantity({**value, "printed": None, "printed_unit": None})


def _printed(value: object) -> str:
    return str(value.get("printed") or "") if isinstance(value, Mapping) else ""


def _texts(facts: EntityFacts) -> Iterator[str]:
    attributes = facts.attributes
    for text in (facts.reaction, attributes.get("reaction"), attributes.get("indication")):
        if text:
            yield str(text)
    if facts.category in ("lab", "vital") and whole_amount(facts.value, facts.unit) is None:
        yield facts.value or ""
        yield str(attributes.get("value_text") or "")
        # "Nonreactive" and "non-reactive" are one result.
        yield from (
            re.sub(r"\bnon[- ]", "non", str(text))
            for text in (facts.value, attributes.get("value_text"))
            if text and re.search(r"\bnon[- ]", str(text))
        )
    if facts.frequency and timing.ordered(facts.frequency) is None:
        yield facts.frequency
    if facts.route and not timing.routes_in(facts.route):
        yield facts.route
    if facts.reference_range and not amounts_in(facts.reference_range):
        yield facts.reference_range


def _result_words(facts: EntityFacts) -> frozenset[str]:
    """Return the words of a result: `reactive` alone is not the result `non-reactive`."""
    if facts.category not in ("lab", "vital"):
        return frozenset()
    printed = (facts.value, facts.attributes.get("value_text"), facts.reference_range)
    words = {_one(word) for text in printed if text for word in words_of(str(text))}
    return frozenset(words - {_one(word) for word in words_of(facts.name)})


def _unit_words(facts: EntityFacts) -> frozenset[str]:
    """Return the words of the units of a result."""
    if facts.category not in ("lab", "vital"):
        return frozenset()
    quantities = [facts.attributes.get(name) for name in ("value", "converted")]
    units = [facts.unit] + [
        str(each.get(name) or "")
        for each in quantities
        if isinstance(each, Mapping)
        for name in ("unit", "printed_unit")
    ]
    return frozenset(_one(word) for unit in units if unit for word in words_of(unit))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _strings(each)


def _flags_of(printed: object) -> frozenset[str]:
    words = set(words_of(str(printed or "")))
    found: set[str] = set()
    if words & {"h", "hh", "high", "above", "elevated", "hi"}:
        found |= {"high", "abnormal"}
    if words & {"l", "ll", "low", "below", "lo"}:
        found |= {"low", "abnormal"}
    if words & {"hh", "ll", "critical", "crit", "panic", "c"}:
        found |= {"critical", "abnormal"}
    if words & {"a", "abn", "abnormal"}:
        found.add("abnormal")
    if words & {"n", "normal", "nl", "wnl"}:
        found.add("normal")
    if {"high", "low"} <= found or ("normal" in found and len(found) > 1):
        return frozenset()
    return frozenset(found)
