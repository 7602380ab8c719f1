"""The sentences of a narrative, most important first, each with the keys of its entities.

Each sentence has at most the allowed number of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.narrative import english
from pipeline.providers.local.narrative.phrases import FactPhrase, merged
from pipeline.providers.local.narrative.templates import TEMPLATES, SentenceTemplate

_VISITS = {
    "office_visit": "office visit",
    "emergency": "emergency department visit",
    "inpatient": "inpatient encounter",
    "outpatient": "outpatient visit",
    "laboratory": "laboratory encounter",
    "imaging": "imaging encounter",
    "procedure": "procedure encounter",
    "consultation": "consultation",
    "telehealth": "telehealth visit",
    "immunization": "immunization visit",
}
_STAY = "inpatient"
_ENDS_IN_DATE = re.compile(r" on [A-Z][a-z]+ \d{1,2}, \d{4}$")


@dataclass(frozen=True, kw_only=True)
class SentenceDraft:
    """One sentence with the keys of its entities."""

    text: str
    keys: tuple[str, ...]
    parts: tuple[SentenceDraft, ...] = ()
    """The same facts in one sentence each; empty if the sentence tells one fact."""
    rank: tuple[int, int] = (0, 0)
    """Number of the template, and the turn in which the sentence is chosen (`turn_of`)."""


def drafts_of(facts: Sequence[EntityFacts], words: int, *, record: bool) -> Iterator[SentenceDraft]:
    """Yield the sentences; each has at most `words` words. `record` is for several encounters."""
    usable = [each for each in facts if "status_contradicts" not in each.flags]
    opened = False
    for place, template in enumerate(TEMPLATES):
        chosen = [each for each in usable if template.applies(each)]
        if template.order is not None:
            chosen.sort(key=template.order)
        number = 0
        groups = (
            (when, each)
            for when, group in _by_date(chosen, template, record=record)
            for each in (_by_name(group) if template.one_name else [group])
        )
        for when, group in groups:
            told = merged(group, template.phrase)
            for phrases in _by_shape(told) if template.shaped else [told]:
                for part in _parts(phrases, template, when, words, opened=opened, record=record):
                    opened = opened or when is not None
                    yield replace(part, rank=(place, turn_of(template, number)))
                    number += 1


def _by_name(facts: Sequence[EntityFacts]) -> list[list[EntityFacts]]:
    """Return the entities of each name, in the order of the first of them."""
    found: dict[str, list[EntityFacts]] = {}
    for each in facts:
        found.setdefault(each.name.casefold(), []).append(each)
    return list(found.values())


def turn_of(template: SentenceTemplate, number: int) -> int:
    """Return when the `number`-th sentence of a template is chosen; 0 is first."""
    if template.turn == 0:
        return 0
    if number < template.lead:
        return 1
    return 2 if template.turn == 1 else template.turn + 1 + number - template.lead


def _by_shape(phrases: Sequence[FactPhrase]) -> Iterator[list[FactPhrase]]:
    """Yield phrases with a date, phrases with other parts, and names, each kind by itself.

    A date or a frequency at the end of a list could otherwise be read as that of the whole list.
    """
    shapes: dict[int, list[FactPhrase]] = {}
    for phrase in phrases:
        dated = _ENDS_IN_DATE.search(phrase.text) is not None
        shape = 0 if dated else 2 if phrase.is_name else 1
        shapes.setdefault(shape, []).append(phrase)
    for shape in sorted(shapes):
        yield shapes[shape]


def _by_date(
    facts: Sequence[EntityFacts], template: SentenceTemplate, *, record: bool
) -> Iterator[tuple[EntityFacts | None, list[EntityFacts]]]:
    """Yield the entities of each encounter date, the latest first, with one of them for its date.

    A fact that several encounters repeat is told once, at its latest date.
    """
    if not record or not template.dated:
        kept = list(facts)
        first = next(iter(kept), None)
        same = first is not None and template.dated and all(_same_visit(first, e) for e in kept)
        yield (first if same and first and first.encounter_date else None), kept
        return
    latest: dict[str, EntityFacts] = {}
    for each in facts:
        phrase = template.phrase(each).casefold()
        known = latest.get(phrase)
        if known is None or _date(each) > _date(known):
            latest[phrase] = each
    dates = sorted({_date(each) for each in latest.values()}, reverse=True)
    for when in dates:
        group = [each for each in latest.values() if _date(each) == when]
        yield (group[0] if group[0].encounter_date else None), group


def _date(each: EntityFacts) -> date:
    return each.encounter_date or date.min


def _same_visit(a: EntityFacts, b: EntityFacts) -> bool:
    return a.encounter_date == b.encounter_date and (
        b.entity_date is None or b.entity_date == a.encounter_date
    )


def _parts(
    phrases: Sequence[FactPhrase],
    template: SentenceTemplate,
    when: EntityFacts | None,
    words: int,
    *,
    opened: bool,
    record: bool,
) -> Iterator[SentenceDraft]:
    """Yield sentences with as many phrases as the limits allow.

    A sentence of one encounter gives up its opening before it breaks the limit of words.
    """
    waiting: list[FactPhrase] = []
    for phrase in [*phrases, None]:
        opening = _opening(when, opened=opened, record=record)
        is_full = phrase is None or len(waiting) == template.most
        if waiting and (is_full or not _is_short([*waiting, phrase], template, opening, words)):
            if not record and not _is_short(waiting, template, opening, words):
                opening = ""
            if _is_short(waiting, template, opening, words):
                yield _draft(waiting, template, opening)
                opened = opened or bool(opening)
            waiting = []
        if phrase is not None:
            waiting.append(phrase)


def _is_short(
    phrases: Sequence[FactPhrase | None], template: SentenceTemplate, opening: str, words: int
) -> bool:
    told = [phrase for phrase in phrases if phrase is not None]
    return len(_draft(told, template, opening).text.split()) <= words


def _opening(when: EntityFacts | None, *, opened: bool, record: bool) -> str:
    if when is None or when.encounter_date is None or (opened and not record):
        return ""
    visit = _VISITS.get(when.encounter_type or "")
    if when.encounter_type == _STAY:
        # A fact of a stay can be of any day of the stay.
        return f"during the {visit} of {english.day(when.encounter_date)}, "
    if visit and not record:
        return f"at the {visit} on {english.day(when.encounter_date)}, "
    return f"on {english.day(when.encounter_date)}, "


def _draft(
    phrases: Sequence[FactPhrase], template: SentenceTemplate, opening: str
) -> SentenceDraft:
    listed = english.listed([phrase.text for phrase in phrases], template.join)
    words = (opening and template.words_at_visit) or template.words
    text = opening + words(listed, len(phrases))
    single = len(phrases) == 1
    return SentenceDraft(
        text=english.sentence(text),
        keys=tuple(key for phrase in phrases for key in phrase.keys),
        parts=() if single else tuple(_draft([each], template, opening) for each in phrases),
    )
