"""The sentences of a narrative, most important first: what each says, and about which entities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.narrative import english
from pipeline.providers.local.narrative.phrases import FactPhrase, lab, medication, merged, named
from pipeline.providers.local.narrative.phrases import immunization as immunization_phrase

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
_TAKEN = ("active", "changed")
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


@dataclass(frozen=True, kw_only=True)
class SentenceTemplate:
    """One kind of sentence: which entities it tells, and in which words."""

    applies: Callable[[EntityFacts], bool]
    phrase: Callable[[EntityFacts], str]
    words: Callable[[str, int], str]
    """The sentence without its period, from the list of phrases and their number."""
    most: int = 6
    """Phrases per sentence."""
    join: str = "and"
    dated: bool = True
    """Whether the sentence may begin with the date of the encounter."""
    turn: int = 2
    """When the limit of sentences is short: 0 is chosen first, because without "aspirin was
    stopped" the sentence "the patient was taking aspirin" would mislead; 1 follows, because half
    of a list of medications or allergies would mislead; the other kinds follow in turn."""
    lead: int = 0
    """Sentences that are chosen before the rest of the lists, because a reader acts on them."""
    order: Callable[[EntityFacts], float] | None = None
    """Key by which the entities are told; None keeps the order of the pages."""
    shaped: bool = True
    """Whether names stand apart from phrases with a dose or a date."""


def _of(*categories: str) -> Callable[[EntityFacts], bool]:
    return lambda each: each.category in categories


def _present(each: EntityFacts) -> bool:
    """Whether the text states the fact of the patient, today, without doubt."""
    return (
        each.negated is False
        and each.certainty in (None, "certain")
        and each.experiencer in (None, "patient")
        and each.temporality in (None, "current")
        and each.attributes.get("verification_status") in (None, "confirmed")
        and each.attributes.get("clinical_status") in (None, "active", "recurrence", "relapse")
    )


def _patients(each: EntityFacts) -> bool:
    return each.experiencer in (None, "patient")


def _sure(each: EntityFacts) -> bool:
    return each.certainty in (None, "certain")


def _status(each: EntityFacts) -> str | None:
    status: str | None = each.attributes.get("status") or each.status
    return status


def _plain(text: str) -> Callable[[str, int], str]:
    return lambda listed, number: text.format(listed)


def _one(singular: str, plural: str) -> Callable[[str, int], str]:
    return lambda listed, number: (singular if number == 1 else plural).format(listed)


def _verb(singular: str, plural: str) -> Callable[[str, int], str]:
    return lambda listed, number: f"{listed} {singular if number == 1 else plural}"


def _medication(*statuses: str | None) -> Callable[[EntityFacts], bool]:
    return lambda each: (
        each.category == "medication"
        and _patients(each)
        and _status(each) in statuses
        and each.step is None
        and (each.certainty != "possible")
    )


def _certain_medication(each: EntityFacts) -> bool:
    return _sure(each) and each.negated is not True and each.temporality in (None, "current")


def _is_planned(each: EntityFacts) -> bool:
    status = each.attributes.get("status")
    return each.temporality == "planned" or status in ("planned", "preparation")


def _is_abnormal(each: EntityFacts) -> bool:
    return lab.flag(each) in ("high", "low", "abnormal", "critical")


def _result(each: EntityFacts) -> bool:
    return bool(each.value) and _patients(each) and _sure(each) and each.negated is not True


TEMPLATES: tuple[SentenceTemplate, ...] = (
    SentenceTemplate(
        applies=lambda e: _of("condition")(e) and _present(e),
        phrase=named,
        words=_plain("the patient had {}"),
        turn=1,
        lead=3,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("condition", "symptom")(e)
            and e.negated is False
            and _patients(e)
            and e.temporality in (None, "current")
            and e.certainty == "possible"
        ),
        phrase=named,
        words=_verb("was suspected", "were suspected"),
        turn=1,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _medication(*_TAKEN)(e)
            and _certain_medication(e)
            and not (_status(e) == "changed" and e.dose)
        ),
        phrase=medication.regimen,
        words=_plain("the patient was taking {}"),
        turn=1,
        most=4,
        lead=3,
        order=lambda e: 0 if medication.is_anticoagulant(e) else 1,
    ),
    SentenceTemplate(
        applies=lambda e: _medication("changed")(e) and _certain_medication(e) and bool(e.dose),
        phrase=medication.changed,
        turn=1,
        words=_plain("{}"),
        most=2,
    ),
    SentenceTemplate(
        applies=lambda e: (
            e.category == "medication"
            and e.step is not None
            and _patients(e)
            and _status(e) in (None, *_TAKEN)
            and _certain_medication(e)
            and bool(e.dose)
        ),
        phrase=medication.step,
        words=_plain("the steps of the regimen were {}"),
        turn=1,
        most=9,
        join="then",
        dated=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            e.category == "allergy"
            and e.negated is not True
            and _patients(e)
            and _sure(e)
            and e.temporality in (None, "current")
            and e.attributes.get("clinical_status") in (None, "active")
            and e.attributes.get("verification_status") in (None, "confirmed")
        ),
        phrase=named,
        words=_plain("allergies included {}"),
        turn=1,
        lead=3,
        shaped=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            e.category == "allergy" and e.negated is True and _patients(e) and _sure(e)
        ),
        phrase=lambda e: english.inside(e.name),
        words=_plain("the patient had no allergy to {}"),
        turn=0,
        join="or",
        shaped=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            e.category == "lab" and _result(e) and e.temporality != "historical" and _is_abnormal(e)
        ),
        phrase=lab.result,
        words=_one("the laboratory result was {}", "laboratory results were {}"),
        most=4,
        lead=1,
        order=lambda e: -lab.excess(e),
    ),
    SentenceTemplate(
        applies=lambda e: _of("vital")(e) and _result(e) and e.temporality in (None, "current"),
        phrase=lab.result,
        words=_one("vital signs included {}", "vital signs were {}"),
        most=8,
    ),
    SentenceTemplate(
        applies=lambda e: _of("symptom")(e) and _present(e),
        phrase=named,
        words=_plain("the patient reported {}"),
    ),
    SentenceTemplate(
        applies=lambda e: _medication("stopped")(e),
        phrase=medication.regimen,
        words=_verb("was stopped", "were stopped"),
        turn=0,
        most=3,
    ),
    SentenceTemplate(
        applies=lambda e: _medication("on_hold")(e),
        phrase=medication.regimen,
        words=_verb("was on hold", "were on hold"),
        turn=0,
        most=3,
    ),
    SentenceTemplate(
        applies=lambda e: _medication("planned")(e) and e.certainty != "hypothetical",
        phrase=medication.regimen,
        words=_verb("was planned", "were planned"),
        most=3,
    ),
    SentenceTemplate(
        applies=lambda e: _medication("not_started")(e),
        phrase=medication.regimen,
        words=_verb("was not taken", "were not taken"),
        turn=0,
        most=3,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _medication(None)(e) and _certain_medication(e) and e.negated is not True
        ),
        phrase=medication.regimen,
        words=_plain("the record listed {}"),
        most=4,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("procedure")(e)
            and e.negated is not True
            and _patients(e)
            and _sure(e)
            and e.temporality in (None, "current")
            and not _is_planned(e)
            and e.attributes.get("status") != "not-done"
        ),
        phrase=immunization_phrase,
        words=lambda listed, number: (
            f"the record listed the {'procedure' if number == 1 else 'procedures'} {listed}"
        ),
        lead=1,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("procedure")(e)
            and e.negated is not True
            and _patients(e)
            and e.certainty != "possible"
            and _is_planned(e)
        ),
        phrase=named,
        words=_verb("was planned", "were planned"),
    ),
    SentenceTemplate(
        applies=lambda e: (
            e.category == "lab"
            and _result(e)
            and e.temporality != "historical"
            and not _is_abnormal(e)
        ),
        phrase=lab.result,
        words=_one("the laboratory result was {}", "laboratory results were {}"),
        most=5,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("condition", "symptom")(e)
            and e.negated is False
            and _patients(e)
            and _sure(e)
            and e.temporality == "historical"
        ),
        phrase=named,
        words=_plain("the patient had a history of {}"),
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("procedure")(e)
            and e.negated is not True
            and _patients(e)
            and _sure(e)
            and e.temporality == "historical"
            and e.attributes.get("status") != "not-done"
        ),
        phrase=immunization_phrase,
        words=_plain("past procedures include {}"),
        dated=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("immunization")(e)
            and e.negated is not True
            and _patients(e)
            and _sure(e)
            and not _is_planned(e)
            and e.attributes.get("status") in (None, "completed")
        ),
        phrase=immunization_phrase,
        words=_plain("immunizations include {}"),
        dated=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("immunization")(e)
            and (e.negated is True or e.attributes.get("status") == "not-done")
            and _patients(e)
            and _sure(e)
        ),
        phrase=named,
        words=_verb("was not given", "were not given"),
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("condition", "symptom")(e)
            and e.negated is True
            and _patients(e)
            and _sure(e)
            and e.temporality in (None, "current")
        ),
        phrase=named,
        words=_plain("the patient had no {}"),
        most=8,
        join="or",
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("condition", "symptom")(e)
            and e.negated is False
            and e.experiencer == "family"
            and _sure(e)
            and not _is_planned(e)
        ),
        phrase=named,
        words=_plain("the family history includes {}"),
        dated=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("condition", "symptom")(e)
            and e.negated is True
            and e.experiencer == "family"
            and _sure(e)
            and not _is_planned(e)
        ),
        phrase=named,
        words=_plain("there is no family history of {}"),
        join="or",
        dated=False,
    ),
    SentenceTemplate(
        applies=lambda e: (
            _of("lab", "vital")(e) and _result(e) and e.temporality == "historical"
        ),
        phrase=lab.result,
        words=_plain("earlier results include {}"),
        most=5,
        dated=False,
    ),
)  # fmt: skip


def drafts_of(facts: Sequence[EntityFacts], words: int, *, record: bool) -> Iterator[SentenceDraft]:
    """Yield the sentences; each has at most `words` words. `record` is for several encounters."""
    usable = [each for each in facts if "status_contradicts" not in each.flags]
    opened = False
    for place, template in enumerate(TEMPLATES):
        chosen = [each for each in usable if template.applies(each)]
        if template.order is not None:
            chosen.sort(key=template.order)
        number = 0
        for when, group in _by_date(chosen, template, record=record):
            told = merged(group, template.phrase)
            for phrases in _by_shape(told) if template.shaped else [told]:
                for part in _parts(phrases, template, when, words, opened=opened, record=record):
                    opened = opened or when is not None
                    yield replace(part, rank=(place, turn_of(template, number)))
                    number += 1


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
    if visit and not record:
        return f"at the {visit} on {english.day(when.encounter_date)}, "
    return f"on {english.day(when.encounter_date)}, "


def _draft(
    phrases: Sequence[FactPhrase], template: SentenceTemplate, opening: str
) -> SentenceDraft:
    listed = english.listed([phrase.text for phrase in phrases], template.join)
    text = opening + template.words(listed, len(phrases))
    single = len(phrases) == 1
    return SentenceDraft(
        text=english.sentence(text),
        keys=tuple(key for phrase in phrases for key in phrase.keys),
        parts=() if single else tuple(_draft([each], template, opening) for each in phrases),
    )
