"""Judge the check of narratives on altered and unaltered sentences."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative import check
from pipeline.providers.local.narrative.answer import drafts
from tests.support import (
    narrative_cited,
    narrative_notes,
    narrative_prose,
    narrative_prose_held,
    narrative_prose_more,
)
from tests.support.narrative_facts import generated_sets
from tests.support.narrative_mutations import ALTERATIONS as FIRST
from tests.support.narrative_mutations_more import MORE

Cited = tuple[EntityFacts, ...]
FACTS = narrative_cited.FACTS | narrative_prose_held.FACTS | narrative_notes.FACTS
ALTERATIONS = FIRST | MORE
PROSE = {
    "tuned": (*narrative_prose.USED, *narrative_prose_more.USED),
    "held": narrative_prose_held.USED,
    "notes": (*narrative_notes.TUNED, *narrative_notes.UNSEEN),
    "notes-tuned": narrative_notes.TUNED,
    "notes-unseen": narrative_notes.UNSEEN,
    "letters": narrative_notes.LETTERS,
    "letters-later": narrative_notes.LETTERS_LATER,
    "letters-last": narrative_notes.LETTERS_LAST,
    "all": (*narrative_prose.USED, *narrative_prose_more.USED, *narrative_prose_held.USED),
    "none": (),
}
_SETS_PER_SENTENCE = 0.55
_PER_SENTENCE = 2
"""Alterations per sentence."""
_OF_NOTES = 2
"""Draws of each kind per sentence of the notes."""


@dataclass
class CheckReport:
    """Counts per kind of alteration, and the sentences that are judged wrongly."""

    altered: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    unaltered: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def share_found(self) -> float:
        """The share of altered sentences that the check refuses."""
        return self.found.total() / max(1, self.altered.total())

    @property
    def share_refused(self) -> float:
        """The share of unaltered sentences that the check refuses."""
        return self.refused / max(1, self.unaltered)

    def table(self) -> list[str]:
        """Return the lines of the table."""
        rows = [_row(kind, self.found[kind], self.altered[kind]) for kind in sorted(self.altered)]
        return [
            f"{'alteration':18} {'found unsupported':>22}",
            *rows,
            _row("all", self.found.total(), self.altered.total()),
            _row("unaltered, refused", self.refused, self.unaltered),
        ]


def _row(name: str, found: int, of: int) -> str:
    return f"{name:18} {found:5} of {of:5} {found / max(1, of):9.2%}"


def judged(sentences: int, seed: int, *, prose: str = "all") -> CheckReport:
    """Judge at least `sentences` altered sentences, and each of them unaltered."""
    rng = random.Random(f"narrative-{seed}")
    report = CheckReport()
    for text, cited in _sentences(sentences, seed, prose):
        report.unaltered += 1
        reasons = check(text, cited)
        if reasons:
            report.refused += 1
            report.wrong.append(f"refused: {text} {reasons}")
        elif prose.startswith(("notes", "letters")):
            _alter_all(report, text, cited, rng)
        else:
            _alter(report, text, cited, rng)
        if report.altered.total() >= sentences:
            break
    return report


def _alter(report: CheckReport, text: str, cited: Cited, rng: random.Random) -> None:
    """Alter one sentence in the kinds that are rarest so far."""
    kinds = sorted(ALTERATIONS, key=lambda kind: (report.altered[kind], rng.random()))
    done = 0
    for kind in kinds:
        altered = ALTERATIONS[kind](text, rng)
        if altered is None or altered == text:
            continue
        report.altered[kind] += 1
        if check(altered, cited):
            report.found[kind] += 1
        else:
            report.wrong.append(f"missed {kind}: {text} -> {altered}")
        done += 1
        if done == _PER_SENTENCE:
            return


def _alter_all(report: CheckReport, text: str, cited: Cited, rng: random.Random) -> None:
    """Alter one sentence in every kind."""
    for kind, alteration in ALTERATIONS.items():
        drawn = {alteration(text, rng) for _ in range(_OF_NOTES)} - {None, text}
        for altered in sorted(each for each in drawn if each):
            report.altered[kind] += 1
            if check(altered, cited):
                report.found[kind] += 1
            else:
                report.wrong.append(f"missed {kind}: {text} -> {altered}")


def _sentences(number: int, seed: int, prose: str) -> Iterator[tuple[str, Cited]]:
    """Yield written sentences, then the local sentences of generated texts without end."""
    for text, keys in PROSE[prose]:
        yield text, tuple(FACTS[key] for key in keys.split())
    if prose != "all":
        return
    for _, facts in generated_sets(int(number * _SETS_PER_SENTENCE), seed):
        known = {each.key: each for each in facts}
        for draft in drafts(facts, words=40, record=False):
            yield draft.text, tuple(known[key] for key in draft.keys)
