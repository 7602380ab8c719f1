"""Read the clauses of a text in order: what the text says about each name.

A clause without a name adds to the last name before the clause.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.clinical.narrative.clause import SCOPED, NarrativeClause
from pipeline.clinical.narrative.cue_scope import CueScope
from pipeline.clinical.narrative.items import PartKind, SentencePart, clauses_of
from pipeline.clinical.narrative.known import CitedEntity
from pipeline.clinical.narrative.part_names import PartNames
from pipeline.clinical.narrative.relations import relations
from pipeline.clinical.narrative.told import ToldStatement, ToldText

_PARTS = {PartKind.AMOUNT, PartKind.FREQUENCY, PartKind.ROUTE, PartKind.TEXT}


def statement_of(items: Sequence[SentencePart], cited: Sequence[CitedEntity]) -> ToldText:
    """Return what a text says about each name."""
    statement = ToldText()
    person: list[tuple[str, SentencePart]] = []
    dates: list[tuple[SentencePart, str]] = []
    earlier: list[list[ToldStatement]] = []
    for fresh, parts in clauses_of(items):
        if fresh:
            person, dates = [], []
        begins_with_name = _first(parts) is PartKind.NAME
        clause = NarrativeClause(
            parts, cited, inherited=[] if begins_with_name else person, earlier=earlier
        )
        _read(clause, dates)
        statement.told += clause.told
        statement.strays += clause.strays
        if clause.told:
            earlier = [*earlier, clause.told]
            person = [(k, i) for k, i in clause.told[-1].cues if k in ("family", "other")]
            # "Family history includes stroke in the father but no cancer" denies no cancer of the
            # father alone.
            person = [each for each in person if each[1].phrase.direction == "pre"] or person
            dates = list(clause.told[0].dates)
    return statement


def _first(clause: Sequence[SentencePart]) -> PartKind | None:
    for item in clause:
        if item.kind not in (PartKind.FUNCTION, PartKind.BREAK):
            return item.kind
    return None


def _read(clause: NarrativeClause, dates: list[tuple[SentencePart, str]]) -> None:
    """Attach every part of the clause to a name; `dates` is for names without a date."""
    cues, names = CueScope(clause), PartNames(clause)
    for at, item in enumerate(clause.items):
        cues.attach_event(at, item)
        if item.kind is PartKind.CUE:
            cues.attach(at, item)
        elif item.kind is PartKind.DATE:
            names.attach_date(at, item)
        elif item.kind in _PARTS:
            names.attach(at, item)
        elif item.kind is PartKind.WORD:
            names.attach_word(at, item)
        elif item.text == "for" and item.kind is PartKind.FUNCTION:
            names.attach_purpose(at)
        elif item.text == "as" and _verb_follows(clause, at):
            # "warfarin was stopped, as was lisinopril" borrows the statement of another clause.
            clause.strays.append(item)
    clause.strays += relations(clause)
    for each in clause.told:
        if not any(SCOPED.get(kind) == "person" for kind, _ in each.cues):
            each.cues += clause.inherited
        if not each.dates and not any(i.kind is PartKind.DATE for i, _ in each.parts):
            each.dates = list(dates)
    names.share_routes()
    names.pair_respectively()
    cues.set_aside_choices()


def _verb_follows(clause: NarrativeClause, at: int) -> bool:
    return at + 1 < len(clause.items) and clause.items[at + 1].kind is PartKind.VERB
