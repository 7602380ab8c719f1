"""Relations between two names of a clause: a cause, a purpose, a finding of a procedure.

No entity states such a relation, so the parts that express one are unsupported. A sentence may only
join names: in a list, or with a word that says nothing about their relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.clinical.narrative.clause import FLAGS, NarrativeClause
from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.subjects import addition

_LINKS = {"on", "in", "via", "into", "per", "through", "of", "against", "among"}
"""Prepositions that put one name in relation to another."""
_SOURCES = {"from", "by"}
"""Prepositions of a cause; `from 10 mg` and `from March` are none."""
_OTHER_SUBJECTS = {
    "all", "any", "other", "exam", "examination", "evaluation", "assessment", "finding",
    "findings", "symptom", "symptoms", "complaint", "complaints", "condition", "conditions",
    "problem", "problems", "diagnoses", "medications", "medicines", "drugs", "tests", "testing",
    "studies", "study", "panel", "lab", "labs", "laboratory", "vital", "vitals", "signs",
    "procedure", "procedures", "surgery", "operation", "presentation", "result", "results",
    "allergies", "reactions", "values", "levels", "vaccines", "immunizations",
}  # fmt: skip
"""Nouns that tell of more than the names before, in a clause without a name."""
_TREATMENTS = {
    "treatment", "therapy", "regimen", "medication", "medications", "medicine", "medicines",
    "drug", "drugs", "prescription", "prescriptions", "administration", "dose", "doses", "dosing",
}  # fmt: skip
_SHOWS = {
    "shows", "showed", "shown", "show", "showing", "reveals", "revealed", "demonstrates",
    "demonstrated", "reads", "read", "exhibits", "exhibited", "displays", "displayed",
    "states", "stated", "measures", "contains",
}  # fmt: skip
_DETERMINERS = {"of", "the", "her", "his"}
_COPULAS = {"is", "are", "was", "were", "been", "remains"}
_VISITS = {"seen", "evaluated", "assessed", "visit", "encounter", "admission-date", "checked"}
_ALLERGIES = ("allerg", "intolerance", "hypersensitivity", "exposure")
_TREATED = {"medication"}
_PROBLEMS = {"condition", "symptom"}
_SEEN_IN = {"procedure", "lab", "vital"}


def relations(clause: NarrativeClause) -> Iterator[SentencePart]:
    """Yield the parts of a clause that state a relation between names, or of a name to a visit."""
    items = clause.items
    for at, item in enumerate(items):
        if item.kind is PartKind.FUNCTION:
            is_stray = (
                (item.text in _SOURCES and _is_source(clause, at))
                or (not clause.told and item.text in _OTHER_SUBJECTS)
                or (item.text in _LINKS and _links(clause, at))
                or (item.text == "with" and _treats(clause, at))
                or (item.text in ("for", "of") and _is_purpose(clause, at))
                or (item.text == "for" and _is_reason(clause, at))
                or (item.text == "as" and _is_because(items, at))
                or (item.text in _TREATMENTS and _is_called_treatment(clause, at))
                or (item.text == "despite" and _is_despite(clause))
                or (item.text == "instead of" and not _is_amount(items[at + 1 :]))
                or (item.text == "then" and not _is_step(items, at))
                or (item.text in ("all", "any") and _is_general(items, at))
            )
        elif item.kind is PartKind.VERB:
            is_stray = item.text in _SHOWS and _shows(clause, at)
        elif item.phrase.kind == "allergy":
            is_stray = item.phrase.direction == "either" and _brings(clause, at)
        elif item.phrase.kind in FLAGS:
            is_stray = _is_said_of_all(clause, at)
        else:
            is_stray = item.kind is PartKind.MARK and _treats(clause, at)
        if is_stray:
            yield item


def _is_step(items: Sequence[SentencePart], at: int) -> bool:
    """Return whether `then` joins two doses; otherwise `then` orders two facts in time."""
    following = [item for item in items[at + 1 :] if item.kind is not PartKind.FUNCTION][:2]
    kinds = [item.kind for item in following]
    return bool(kinds) and (kinds[0] is PartKind.AMOUNT or kinds[1:] == [PartKind.AMOUNT])


def _is_amount(items: Sequence[SentencePart]) -> bool:
    return bool(items) and items[0].kind is PartKind.AMOUNT


def _is_general(items: Sequence[SentencePart], at: int) -> bool:
    """Return whether `all` or `any` tells of more than the names: `all results were normal`."""
    following = [i.text for i in items[at + 1 : at + 5] if i.text not in _DETERMINERS]
    return bool(following) and following[0] in _OTHER_SUBJECTS


def _is_said_of_all(clause: NarrativeClause, at: int) -> bool:
    """Return whether a flag is said of a noun such as `results`, and of no name."""
    if not clause.told or clause.told[0].at < at or clause.told[0].at == at + 1:
        return False
    before = [item.text for item in clause.items[:at] if item.text not in ("all", "both", "each")]
    return bool(_COPULAS & {*before[-1:]}) and bool(_OTHER_SUBJECTS & {*before})


def _links(clause: NarrativeClause, at: int) -> bool:
    """Return whether a preposition is between two names: `edema from heart failure`."""
    following = _name_after(clause, at)
    before = _names_before(clause, at)
    if following is None or not before:
        return False
    if clause.items[at].text == "of":
        # "A level of" and "a history of" follow a word, "sepsis of pneumonia" a name.
        return clause.items[at - 1].kind is PartKind.NAME
    return True


def _is_source(clause: NarrativeClause, at: int) -> bool:
    """Return whether `from` or `by` governs no amount, date or route."""
    if not clause.told or clause.told[0].at > at:
        return False
    for item in clause.items[at + 1 :]:
        if item.kind in (PartKind.AMOUNT, PartKind.DATE, PartKind.FREQUENCY, PartKind.ROUTE):
            return False
        if item.kind is PartKind.FUNCTION or (
            item.kind is PartKind.CUE and item.phrase.kind == "history"
        ):
            continue
        return True
    return True


def _treats(clause: NarrativeClause, at: int) -> bool:
    """Return whether a word joins a condition and a medication: `gout with allopurinol`."""
    following = _name_after(clause, at)
    before = _names_before(clause, at)
    if following is None or not before or clause.items[at - 1].text in ("along", "together"):
        return False
    names = [told.at for told in clause.told if told.at < at]
    between = clause.items[names[-1] : at]
    if any(i.kind is PartKind.VERB or i.phrase.kind in ("family", "other") for i in between):
        return False
    first, second = _categories(clause, before[-1]), _categories(clause, following)
    return bool(
        (first & _PROBLEMS and second & _TREATED)
        or (first & _TREATED and second & _PROBLEMS)
        # ICD-10-CM reads "diabetes with kidney disease" as diabetic kidney disease.
        or (
            clause.items[at].text == "with"
            and first == second == {"condition"}
            and not _begins_statement(clause, at)
        )
    )


def _begins_statement(clause: NarrativeClause, at: int) -> bool:
    """Return whether `with` adds a statement: `with a history of asthma`."""
    if addition(clause, at):
        return True
    for item in clause.items[at + 1 :]:
        if item.kind is PartKind.CUE and item.phrase.kind in ("history", "possible", "negation"):
            return True
        if item.kind is not PartKind.FUNCTION:
            return False
    return False


def _brings(clause: NarrativeClause, at: int) -> bool:
    """Return whether one name brings about another: `penicillin allergy leads to asthma`."""
    is_noun = clause.items[at].text.startswith(_ALLERGIES)
    return not is_noun and bool(_names_before(clause, at)) and _name_after(clause, at) is not None


def _is_despite(clause: NarrativeClause) -> bool:
    """Return whether `despite` could tell that a treatment fails."""
    return any(_categories(clause, told.name) - _PROBLEMS for told in clause.told)


def _is_purpose(clause: NarrativeClause, at: int) -> bool:
    """Return whether a treatment of a condition is named: `therapy for gout is allopurinol`."""
    before = clause.items[at - 1] if at else None
    following = _name_after(clause, at)
    if before is None or following is None or before.text not in _TREATMENTS:
        return False
    is_drug = any(_categories(clause, name) & _TREATED for name in _names_before(clause, at))
    return not is_drug and bool(_categories(clause, following) & _PROBLEMS)


def _is_reason(clause: NarrativeClause, at: int) -> bool:
    """Return whether a condition is the reason of a visit: `was admitted for pneumonia`."""
    following = _name_after(clause, at)
    if following is None or _names_before(clause, at):
        return False
    categories = _categories(clause, following)
    before = clause.items[:at]
    if any(item.phrase.direction == "encounter" for item in before):
        return bool(categories & _PROBLEMS)
    # A patient is evaluated for the symptoms that the patient reports.
    is_seen = any(item.kind is PartKind.FUNCTION and item.text in _VISITS for item in before)
    return is_seen and "condition" in categories


def _is_because(items: Sequence[SentencePart], at: int) -> bool:
    """Return whether `as` begins a reason: `as the patient has gout`."""
    for item in items[at + 1 :]:
        if item.kind is PartKind.CUE and item.phrase.kind == "patient":
            return True
        if item.kind is not PartKind.FUNCTION:
            return False
    return False


def _is_called_treatment(clause: NarrativeClause, at: int) -> bool:
    """Return whether a medication is told as the treatment of a condition of the clause."""
    before = clause.items[at - 1].text if at else ""
    if before not in ("as", "for"):
        return False
    return any(_categories(clause, name) & _PROBLEMS for name in _names_before(clause, at))


def _shows(clause: NarrativeClause, at: int) -> bool:
    """Return whether a procedure or a result shows a condition: `the ECG showed fibrillation`."""
    before = _names_before(clause, at)
    following = [told.name for told in clause.told if told.at > at]
    return (
        bool(before)
        and bool(_categories(clause, before[-1]) & _SEEN_IN)
        and any(_categories(clause, name) & _PROBLEMS for name in following)
    )


def _names_before(clause: NarrativeClause, at: int) -> list[SentencePart]:
    return [told.name for told in clause.told if told.at < at]


def _name_after(clause: NarrativeClause, at: int) -> SentencePart | None:
    """Return the name that a preposition governs; adjectives may stand before the name."""
    for item in clause.items[at + 1 :]:
        if item.kind is PartKind.NAME:
            return item
        if item.kind is PartKind.CUE and item.phrase.kind not in ("patient", "family", "other"):
            continue
        if item.kind not in (PartKind.FUNCTION, PartKind.WORD):
            return None
        if item.kind is PartKind.FUNCTION and item.text not in _ARTICLES:
            return None
    return None


_ARTICLES = {"a", "an", "the", "this", "that", "her", "his", "their", "known", "level", "result"}


def _categories(clause: NarrativeClause, name: SentencePart) -> set[str]:
    return {clause.cited[i].facts.category for i in name.sources}
