"""The kinds of sentences, most important first: which entities each tells, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.narrative import english
from pipeline.providers.local.narrative.phrases import immunization as immunization_phrase
from pipeline.providers.local.narrative.phrases import lab, medication, named

_TAKEN = ("active", "changed")


@dataclass(frozen=True, kw_only=True)
class SentenceTemplate:
    """One kind of sentence: which entities it tells, and in which words."""

    applies: Callable[[EntityFacts], bool]
    phrase: Callable[[EntityFacts], str]
    words: Callable[[str, int], str]
    """The sentence without its period, from the list of phrases and their number."""
    words_at_visit: Callable[[str, int], str] | None = None
    """The same behind the date of an encounter, if the fact may be older than the encounter."""
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
    one_name: bool = False
    """Whether a sentence tells of one name only, because the order of its phrases has a meaning."""
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
        one_name=True,
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
        words_at_visit=_verb("had been stopped", "had been stopped"),
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
