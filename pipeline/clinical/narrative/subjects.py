"""The names that a predicate speaks of: the whole subject, and not only the nearest name.

"Creatinine (2.1) and potassium (3.2) were low" and "both low" speak of both results.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.clinical.narrative.clause import NarrativeClause
from pipeline.clinical.narrative.items import PartKind, SentencePart
from pipeline.clinical.narrative.told import ToldStatement

_TWO = {"both", "both of"}
_ALL = {"all", "each", "each of"}
_SINGULAR = {"is", "was", "has", "remains", "reads", "measures", "measured", "does", "isn't"}
"""Verbs of one name: "A and B was low" says nothing about A."""
_LISTS = {"include", "includes", "included"}
_RELATIVE = {"which", "that", "who"}
_BRACKETS = {PartKind.OPEN, PartKind.CLOSE}


def spoken_of(clause: NarrativeClause, at: int) -> list[ToldStatement]:
    """Return the names of the subject of a part behind a verb, or behind `both` and `each`.

    Empty if the part follows its own name, and after a verb of one name.
    """
    if clause.items[at].in_brackets:
        return []
    if not clause.told:
        return _of_clauses_before(clause, at)
    for index in range(at - 1, -1, -1):
        item = clause.items[index]
        if item.kind is PartKind.NAME or item.kind in _BRACKETS:
            return []
        if _is_quantifier(item):
            return _quantified(item, [told for told in clause.told if told.at < index], clause)
        if _is_predicate(item):
            return _subject(clause, index)
    return []


def addition(clause: NarrativeClause, at: int) -> list[ToldStatement]:
    """Return the names of an addition that begins at a place: `, with gout excluded`.

    A word such as `excluded` or `scheduled` behind these names is about these names only.
    """
    items = clause.items
    if at < 1 or items[at].text != "with" or items[at - 1].kind is not PartKind.BREAK:
        return []
    names: list[ToldStatement] = []
    for index in range(at + 1, len(items)):
        item = items[index]
        if item.kind is PartKind.NAME:
            names.append(clause.told_at(index))
        elif item.kind is PartKind.CUE and names:
            return [] if item.phrase.begins_with_verb else names
        elif item.kind not in (PartKind.FUNCTION, PartKind.BREAK):
            return []
    return []


def _subject(clause: NarrativeClause, verb: int) -> list[ToldStatement]:
    before = clause.items[verb - 1] if verb else None
    if before is not None and _is_quantifier(before):
        names = [told for told in clause.told if told.at < verb]
        return _quantified(before, names, clause) if names else []
    if before is not None and before.text in _RELATIVE:
        return []
    if clause.items[verb].text.split(" ")[0] in _SINGULAR:
        return []
    begin = next((i for i in range(verb - 1, -1, -1) if _is_predicate(clause.items[i])), -1)
    return [told for told in clause.told if begin < told.at < verb]


def _of_clauses_before(clause: NarrativeClause, at: int) -> list[ToldStatement]:
    """Return the names that a clause without a name speaks of: `both of which were stopped`."""
    parts = clause.items[: at + 1]
    quantifier = next((item for item in parts if _is_quantifier(item)), None)
    if quantifier is not None:
        return _quantified(quantifier, [], clause)
    if any(_is_plural(item) for item in parts):
        names = clause.earlier[-1] if clause.earlier else []
        every = [told for each in clause.earlier for told in each]
        return names if len(names) > 1 else every[-2:]
    return []


def _quantified(
    quantifier: SentencePart, names: Sequence[ToldStatement], clause: NarrativeClause
) -> list[ToldStatement]:
    """Return the two names, or all names, before `both` or `all`."""
    every = [told for each in clause.earlier for told in each] + list(names)
    if quantifier.text in _TWO:
        return every[-2:]
    return list(names) if len(names) > 1 else every


def _is_quantifier(item: SentencePart) -> bool:
    return item.kind is PartKind.FUNCTION and item.text in _TWO | _ALL


def _is_predicate(item: SentencePart) -> bool:
    if item.kind is PartKind.CUE:
        is_use = item.phrase.kind == "active" and item.phrase.direction != "pre"
        return item.phrase.kind == "allergy" or is_use
    return item.kind is PartKind.VERB or item.text in _LISTS


def _is_plural(item: SentencePart) -> bool:
    return item.kind in (PartKind.VERB, PartKind.CUE) and item.text.split(" ")[0] in (
        "were",
        "are",
        "have",
    )
