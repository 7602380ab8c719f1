"""What the local engine reads differently from a reply, attribute by attribute.

This module is pure. `None` means "not assessed" on either side. An attribute that the engine has
not assessed is never disputed. An attribute that the reply has not assessed is disputed only if
the engine reads something that keeps the fact from being the patient's own present fact.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.clinical.medications import sig_forms
from pipeline.clinical.page_text.spellings import fold, occurs
from pipeline.core.types import Span
from pipeline.providers.local.assertions.judgement import Assertion
from pipeline.providers.local.local_reading import SecondReading
from pipeline.providers.schemas import NOT_TAKEN, FoundEntity, Temporality
from pipeline.stages.page_checks import flag_forms, quoted_names

NOT_UNDERSTOOD_RULE = "not-understood.v1"
"""The end of the rules that report a row with an unexplained token, without a value."""


@dataclass(frozen=True, kw_only=True)
class SecondOpinion:
    """What the second reader says about one entity."""

    disputed: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Attribute → the engine's reading."""
    unsupported: tuple[str, ...] = ()
    """Assertions of the reply for which the text has no cue."""
    is_read_once: bool = False
    """The engine did not understand the row, so only the reply explains its numbers."""


def opinions(
    entities: Sequence[FoundEntity],
    spans: Sequence[Sequence[Span]],
    reading: SecondReading,
) -> list[SecondOpinion]:
    """Compare a batch's entities, placed at `spans`, with the engine's reading of the batch.

    Each entity of the engine answers for one entity of the reply at most, so two doses of one
    sentence are compared in their order. An entity without a place is not compared.
    """
    pairs = _paired(entities, spans, reading)
    return [
        _opinion(entity, where[0], pairs.get(number), reading) if where else SecondOpinion()
        for number, (entity, where) in enumerate(zip(entities, spans, strict=True))
    ]


def _paired(
    entities: Sequence[FoundEntity], spans: Sequence[Sequence[Span]], reading: SecondReading
) -> dict[int, FoundEntity]:
    """Pair each entity of a reply with the engine's entity of the same words, best pairs first."""
    by_page: defaultdict[int, list[tuple[Span, int, FoundEntity]]] = defaultdict(list)
    for index, own in enumerate(reading.entities()):
        start = own.start or 0
        by_page[own.page].append((Span(own.page, start, start + len(own.quote)), index, own))
    ranked = []
    for number, (entity, where) in enumerate(zip(entities, spans, strict=True)):
        for span in where[:1]:
            begin, end = span.start, span.end
            for place, index, own in by_page[span.page]:
                # A dense page has thousands of pairs, and hardly one of them overlaps.
                if place.start >= end or place.end <= begin:
                    continue
                if span.overlap(place) and _is_comparable(entity, own):
                    ranked.append((_distance(entity, span, own, place), number, index, own))
    ranked.sort(key=lambda each: each[:3])
    pairs: dict[int, FoundEntity] = {}
    used: set[int] = set()
    for _, number, index, own in ranked:
        if number not in pairs and index not in used:
            pairs[number] = own
            used.add(index)
    for _, number, _, own in ranked:
        pairs.setdefault(number, own)
    return pairs


_KINDS = (frozenset({"condition", "symptom", "procedure"}), frozenset({"vital", "lab"}))
"""Categories between which the same words may be put without being wrong about the patient."""


def _is_comparable(entity: FoundEntity, own: FoundEntity) -> bool:
    """Return whether two entities over the same words speak of the same thing."""
    return _is_same_kind(entity, own) or _is_same_word(entity, own)


def _is_same_kind(entity: FoundEntity, own: FoundEntity) -> bool:
    return entity.category == own.category or any(
        {entity.category, own.category} <= kind for kind in _KINDS
    )


def _is_same_word(entity: FoundEntity, own: FoundEntity) -> bool:
    return quoted_names.is_named(own.name, entity.name, own.category) or quoted_names.is_named(
        entity.name, own.name, own.category
    )


def _distance(entity: FoundEntity, span: Span, own: FoundEntity, place: Span) -> tuple[int, ...]:
    """Rank a pair: the same kind, the same name, the same step, few differences, the same place."""
    differences = sum(1 for _ in _different(entity, own))
    return (
        0 if _is_same_kind(entity, own) else 1,
        0 if _same_name(entity, own) else 1,
        0 if entity.step == own.step else 1,
        differences,
        abs(span.start - place.start) + abs(span.end - place.end),
    )


def _opinion(
    entity: FoundEntity, span: Span, own: FoundEntity | None, reading: SecondReading
) -> SecondOpinion:
    if not reading.covers(span):
        return SecondOpinion()
    is_unread = own is not None and own.rule.endswith(NOT_UNDERSTOOD_RULE)
    disputed = {} if own is None or is_unread else dict(_of_the_words(entity, own))
    mine = own if own is not None and _same_name(entity, own) else None
    disputed.update(_denied(entity, mine or reading.judge(span)))
    numbers = (entity.value, entity.dose, entity.strength, entity.previous_dose)
    return SecondOpinion(
        disputed=disputed,
        unsupported=tuple(
            attribute
            for attribute in _unsupported(entity, mine, span, reading)
            if attribute not in disputed
        ),
        is_read_once=is_unread and any(numbers),
    )


def _of_the_words(entity: FoundEntity, own: FoundEntity) -> Iterator[tuple[str, Any]]:
    """Yield the differences in what is said, by attribute, with the engine's reading."""
    if not _is_same_kind(entity, own):
        yield "category", own.category
        return
    if not _same_name(entity, own):
        if entity.category in ("vital", "lab") and _is_same_measure(entity, own):
            yield "name", own.name
        return
    yield from _different(entity, own)


def _is_same_measure(entity: FoundEntity, own: FoundEntity) -> bool:
    """Return whether two entities with different names stand for the same number or words."""
    quotes = " ".join(entity.quote.split()), " ".join(own.quote.split())
    return quotes[0] == quotes[1] or bool(
        own.value and entity.value and fold(own.value) == fold(entity.value)
    )


def _same_name(entity: FoundEntity, own: FoundEntity) -> bool:
    if entity.category in ("vital", "lab"):
        return quoted_names.is_same_measurement(entity.name, own.name)
    drugs = ("medication", "allergy", "immunization")
    return entity.category not in drugs or _is_same_word(entity, own)


def _folded(one: str, other: str) -> bool:
    return fold(one) == fold(other)


def _contained(one: str, other: str) -> bool:
    return occurs(fold(one), fold(other)) or occurs(fold(other), fold(one))


def _frequency(one: str, other: str) -> bool:
    said, read = sig_forms.frequencies(one), sig_forms.frequencies(other)
    if not said or not read:
        return _contained(one, other)
    if ("as needed" in said) != ("as needed" in read):
        return False
    return sig_forms.same_frequency(one, read) or sig_forms.same_frequency(other, said)


def _route(one: str, other: str) -> bool:
    return sig_forms.route_of(one) == sig_forms.route_of(other)


def _flag(one: str, other: str) -> bool:
    return flag_forms.flag_of(one) == flag_forms.flag_of(other)


def _words_shared(one: str, other: str) -> bool:
    return bool({*one.casefold().split()} & {*other.casefold().split()})


def _needs_time(entity: FoundEntity, temporality: Temporality) -> bool:
    """Return whether a reply must say so: a plan is no fact, an earlier value is not the value."""
    is_measured = entity.category in ("vital", "lab")
    return temporality == "planned" or (temporality == "historical" and is_measured)


_SAME: dict[str, Callable[[str, str], bool]] = {
    "value": _folded,
    "unit": _folded,
    "reference_range": _contained,
    "abnormal_flag": _flag,
    "strength": _folded,
    "dose": _folded,
    "previous_dose": _folded,
    "route": _route,
    "frequency": _frequency,
    "date": _folded,
    "reaction": _words_shared,
}


ATTRIBUTES = (
    "category",
    "name",
    *_SAME,
    "negated",
    "temporality",
    "certainty",
    "experiencer",
    "status",
)
"""The attributes that `disputed` can name."""


def _different(entity: FoundEntity, own: FoundEntity) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that both readers give, and give differently."""
    for attribute, is_same in _SAME.items():
        said, read = getattr(entity, attribute), getattr(own, attribute)
        if said and read and not is_same(said, read):
            yield attribute, read


def _denied(entity: FoundEntity, own: FoundEntity | Assertion) -> Iterator[tuple[str, Any]]:
    """Yield the assertions of the engine that the reply contradicts, or leaves out to harm."""
    if own.negated is not None and bool(own.negated) is not bool(entity.negated):
        yield "negated", own.negated
    others = own.experiencer not in (None, "patient"), entity.experiencer not in (None, "patient")
    if own.experiencer is not None and others[0] is not others[1]:
        yield "experiencer", own.experiencer
    is_certain = (entity.certainty or "certain") == "certain"
    # A possible fact is no fact, whether the reply says so or says nothing.
    if (
        own.certainty is not None
        and own.certainty != entity.certainty
        and not (own.certainty == "certain" and is_certain)
        and not (own.negated and entity.negated)
    ):
        yield "certainty", own.certainty
    if (
        own.temporality is not None
        and own.temporality != entity.temporality
        and (entity.temporality is not None or _needs_time(entity, own.temporality))
    ):
        yield "temporality", own.temporality
    if isinstance(own, FoundEntity) and own.status is not None:
        is_denied = entity.status in NOT_TAKEN if entity.status else entity.negated is True
        if (own.status in NOT_TAKEN) is not is_denied:
            yield "status", own.status


_ABSENT = re.compile(r"neg(?:ative)?|non-?reactive|(?:not|none|un)\W?\w*|absent|no\b.*", re.I)
"""A result in words that denies what was tested for."""


def _unsupported(
    entity: FoundEntity, own: FoundEntity | None, span: Span, reading: SecondReading
) -> Iterator[str]:
    """Yield the claims of a reply for which the engine finds no phrase in the sentence."""
    claims = {
        "negated": bool(entity.negated) and not _ABSENT.fullmatch(entity.value or ""),
        "experiencer": entity.experiencer in ("family", "other"),
        "certainty": entity.certainty in ("possible", "hypothetical"),
        "temporality": entity.temporality == "planned",
        "status": entity.status in NOT_TAKEN,
    }
    if any(claims.values()):
        found: list[Assertion | FoundEntity] = [reading.judge(span)]
        found += [own] if own is not None else []
        is_denied = any(each.negated for each in found)
        is_open = any(each.certainty not in (None, "certain") for each in found)
        is_past = any(each.temporality not in (None, "current") for each in found)
        is_other = any(each.experiencer not in (None, "patient") for each in found)
        shown = {
            "negated": is_denied,
            "experiencer": is_other,
            "certainty": is_open or is_past,
            "temporality": is_open or is_past,
            "status": is_denied or is_open or is_past or (own is not None and own.status),
        }
        yield from (name for name, is_claimed in claims.items() if is_claimed and not shown[name])
