"""The kinds of generated cases by name."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.generator import forms, labs, medications, results, sentences, states, vitals
from tests.support.generator.cases import GeneratedCase, Maker, cases

KINDS: dict[str, Maker] = {
    "lab-table": labs.table,
    "lab-sentence": labs.sentence,
    "lab-titer": results.titer,
    "lab-ordinal": results.ordinal,
    "lab-word": results.word,
    "lab-wrapped": results.wrapped,
    "vital-readings": vitals.readings,
    "vital-repeated": vitals.repeated,
    "medication-plain": medications.plain,
    "medication-changed": medications.changed,
    "medication-steps": medications.steps,
    "medication-ended": medications.ended,
    "medication-others": medications.others,
    "medication-state-before": states.before,
    "medication-state-above": states.above,
    "medication-switched": states.switched,
    "form-boxes": forms.boxes,
    "form-yes-or-no": forms.yes_or_no,
    "sentence-stated": sentences.stated,
    "sentence-negated": sentences.negated,
    "sentence-not-stated": sentences.not_stated,
    "sentence-mixed": sentences.mixed,
    "sentence-target": sentences.target,
}
SEEDS = 1_000_000
"""GeneratedCase seeds for each seed of a run, so that two runs share no case."""


def all_cases(number: int, seed: int) -> Iterator[GeneratedCase]:
    """Yield at least `number` cases, the same number of each kind."""
    each = -(-number // len(KINDS))
    first = seed * SEEDS
    for kind, maker in KINDS.items():
        yield from cases(kind, maker, range(first, first + each))


def the_case(name: str) -> GeneratedCase:
    """Return the case with the name `kind:seed`, as the report prints it."""
    kind, _, seed = name.rpartition(":")
    return next(cases(kind, KINDS[kind], range(int(seed), int(seed) + 1)))
