"""The check of one sentence against the entities that it cites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative.claims import reasons_for
from pipeline.clinical.narrative.items import PartKind, SentencePart, items_of
from pipeline.clinical.narrative.known import CitedEntity, known_of, singular
from pipeline.clinical.narrative.reasons import UnsupportedReason, reason
from pipeline.clinical.narrative.statement import statement_of
from pipeline.clinical.narrative.text import (
    has_control_characters,
    is_familiar,
    tokens_of,
)
from pipeline.clinical.narrative.told import ToldStatement

_LONGEST_TEXT = 2_000
_CODES = {
    PartKind.AMOUNT: UnsupportedReason.NUMBER,
    PartKind.FREQUENCY: UnsupportedReason.NUMBER,
    PartKind.DATE: UnsupportedReason.DATE,
    PartKind.BREAK: UnsupportedReason.CERTAINTY,
}
_CODES_OF_CUES = {
    "negation": UnsupportedReason.NEGATION,
    "possible": UnsupportedReason.CERTAINTY,
    "hypothetical": UnsupportedReason.CERTAINTY,
    "confirmed": UnsupportedReason.CERTAINTY,
    "family": UnsupportedReason.PERSON,
    "other": UnsupportedReason.PERSON,
    "history": UnsupportedReason.TEMPORALITY,
    "planned": UnsupportedReason.TEMPORALITY,
    "allergy": UnsupportedReason.NAME,
    "high": UnsupportedReason.FLAG,
    "low": UnsupportedReason.FLAG,
    "normal": UnsupportedReason.FLAG,
    "abnormal": UnsupportedReason.FLAG,
    "critical": UnsupportedReason.FLAG,
}
_HARMLESS = frozenset({"current", "changed", "active", "started"})
_HE = frozenset({"he", "him", "his", "man", "male", "gentleman"})
_SHE = frozenset({"she", "her", "hers", "woman", "female", "lady"})
_OF_AN_OPENING = frozenset(
    {PartKind.FUNCTION, PartKind.VERB, PartKind.DATE, PartKind.BREAK, PartKind.END}
)
_GIVEN = ("vaccin", "immuni", "shot", "given", "received", "administered", "booster")


def check(
    text: str, cited: Sequence[EntityFacts], *, max_words: int | None = None
) -> tuple[str, ...]:
    """Return the reasons why the cited entities do not support a sentence; empty if they do.

    A reason is `code:word` with a code of `UnsupportedReason`. The function never raises. A text
    of several sentences is judged as a whole. `max_words` is the largest number of words per text.
    """
    return check_known(text, [known_of(each) for each in cited], max_words=max_words)


def check_known(
    text: str, cited: Sequence[CitedEntity], *, max_words: int | None = None
) -> tuple[str, ...]:
    """Check a sentence against entities that `known_of` has read; otherwise like `check`."""
    if not cited:
        return (reason(UnsupportedReason.NOT_CITED),)
    length = len(text.split())
    if len(text) > _LONGEST_TEXT or (max_words is not None and length > max_words):
        return (reason(UnsupportedReason.LENGTH, length),)
    refused = [
        reason(UnsupportedReason.NOT_ACCEPTED, each.facts.key)
        for each in cited
        if not each.facts.accepted
    ]
    if refused:
        return tuple(refused)
    return tuple(dict.fromkeys([*_foreign(text, cited), *_stated(text, cited)]))


def _foreign(text: str, cited: Sequence[CitedEntity]) -> Iterator[str]:
    """Yield the parts that are no English prose and do not stand in a cited entity."""
    if has_control_characters(text):
        yield reason(UnsupportedReason.WORD, "control character")
    names = {token for known in cited for token in known.printed_name}
    for token in tokens_of(text):
        if not is_familiar(token) and token.text not in names:
            code = UnsupportedReason.NUMBER if token.text.isnumeric() else UnsupportedReason.WORD
            yield reason(code, token.text)


def _stated(text: str, cited: Sequence[CitedEntity]) -> Iterator[str]:
    items = items_of(text, cited)
    yield from _pronouns(text, items, cited)
    if _is_opening(items):
        yield from _opening(items, cited)
        return
    statement = statement_of(items, cited)
    for item in statement.strays:
        yield from _stray(item, cited)
    covered: set[int] = set()
    steps: dict[str, int] = {}
    for told in statement.told:
        candidates = [(i, cited[i]) for i in sorted(_sources(told, cited))]
        found, entities = reasons_for(told, candidates)
        covered |= entities
        yield from found
        yield from _steps([cited[i] for i in sorted(entities)], steps)
    yield from _earlier(items, cited)
    words = " ".join(t.text for t in tokens_of(text))
    for index, known in enumerate(cited):
        is_named = known.facts.category != "immunization" or any(g in words for g in _GIVEN)
        if index not in covered or not is_named:
            yield reason(UnsupportedReason.NAME, known.facts.key)


def _pronouns(
    text: str, items: Sequence[SentencePart], cited: Sequence[CitedEntity]
) -> Iterator[str]:
    """Yield a pronoun of the patient that the quotes of the entities contradict."""
    if any(item.phrase.kind in ("family", "other") for item in items):
        return
    told = {token.text for token in tokens_of(text)}
    quoted = {word for known in cited for word in known.quote}
    for mine, others in ((_HE, _SHE), (_SHE, _HE)):
        if quoted & mine and not quoted & others:
            yield from (reason(UnsupportedReason.PERSON, word) for word in sorted(told & others))


def _is_opening(items: Sequence[SentencePart]) -> bool:
    """Return whether a text names only the visit: `The patient was seen at an office visit`."""
    visit = any(item.phrase.direction == "encounter" for item in items)
    return visit and all(
        item.kind in _OF_AN_OPENING
        or item.phrase.direction == "encounter"
        or (item.kind is PartKind.CUE and item.phrase.kind == "patient")
        for item in items
    )


def _opening(items: Sequence[SentencePart], cited: Sequence[CitedEntity]) -> Iterator[str]:
    """Yield why the visit is not that of all cited entities."""
    for item in items:
        if item.phrase.direction == "encounter":
            yield from _stray(item, cited)
        elif item.date is not None:
            days = [known.facts.encounter_date for known in cited]
            if not all(day is not None and item.date.fits(day.isoformat()) for day in days):
                yield reason(UnsupportedReason.DATE, item.text)


def _earlier(items: Sequence[SentencePart], cited: Sequence[CitedEntity]) -> Iterator[str]:
    """Yield a visit to which the text puts a fact of an earlier day without that day."""
    visits = [item for item in items if item.phrase.direction == "encounter"]
    if not visits:
        return
    dates = [item.date for item in items if item.date is not None]
    for known in cited:
        own = known.own_dates
        stated = any(date.fits(each) for date in dates for each in own)
        day = known.facts.encounter_date
        stops = any(item.phrase.kind == "stopped" and not _is_state(item) for item in items)
        unknown = (
            stops and known.status == "stopped" and (day and day.isoformat()) not in known.stops
        )
        if (known.is_before_the_visit and not stated) or unknown:
            yield reason(UnsupportedReason.DATE, visits[0].text)


def _is_state(cue: SentencePart) -> bool:
    """Return whether a cue tells that something was over before: `had been stopped`."""
    return bool({"had", "has", "have", "no"} & set(cue.words))


def _steps(told: Sequence[CitedEntity], last: dict[str, int]) -> Iterator[str]:
    """Yield the steps of a taper that the text tells after a later step."""
    for known in told:
        name, step = known.facts.name.casefold(), known.facts.step
        if step is None:
            continue
        if len(told) == 1 and step < last.get(name, 0):
            yield reason(UnsupportedReason.NUMBER, "order of steps")
        last[name] = max(step, last.get(name, 0))


def _sources(told: ToldStatement, cited: Sequence[CitedEntity]) -> frozenset[int]:
    """Return the entities of a name: allergies where the sentence speaks of an allergy."""
    sources = told.name.sources
    allergies = frozenset(i for i in sources if cited[i].facts.category == "allergy")
    if allergies and allergies != sources:
        return allergies if told.kinds("allergy") else sources - allergies
    return sources


def _stray(item: SentencePart, cited: Sequence[CitedEntity]) -> Iterator[str]:
    kind = item.phrase.kind
    if item.kind is PartKind.CUE and item.phrase.direction == "encounter":
        if kind != "any" and not all(known.facts.encounter_type == kind for known in cited):
            yield reason(UnsupportedReason.WORD, item.text)
        return
    if (
        item.kind is PartKind.CUE
        and kind == "family"
        and any(known.facts.experiencer == "family" for known in cited)
    ):
        # The first of two words for one person, such as "maternal" or "family history".
        return
    quoted = all(known.has(singular(item.words)) for known in cited)
    if item.kind is PartKind.CUE and kind in _HARMLESS and quoted:
        return
    code = _CODES_OF_CUES.get(
        kind, UnsupportedReason.WORD if item.kind is not PartKind.CUE else UnsupportedReason.STATUS
    )
    yield reason(_CODES.get(item.kind, code), item.text)
