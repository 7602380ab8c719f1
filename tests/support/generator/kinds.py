"""The kinds of generated cases by name."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.generator import (
    contexts,
    cues,
    forms,
    lab_details,
    lab_layouts,
    lab_mixed,
    labs,
    lookalikes,
    medications,
    prescriptions,
    regimens,
    results,
    sentences,
    states,
    vital_tables,
    vitals,
    wide,
)
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
    "lab-columns": lab_layouts.columns,
    "lab-dated": lab_layouts.dated,
    "lab-missing": lab_layouts.missing,
    "lab-remarks": lab_layouts.remarks,
    "lab-beside": lab_layouts.beside,
    "lab-units": lab_details.units,
    "lab-ranges": lab_details.ranges,
    "lab-names": lab_details.names_with_digits,
    "lab-flags": lab_details.flags,
    "lab-footnotes": lab_details.footnotes,
    "lab-percent": lab_details.percent_and_absolute,
    "lab-series": lab_details.series,
    "lab-commas": lab_details.decimal_commas,
    "vital-flowsheet": vital_tables.flowsheet,
    "vital-listed": vital_tables.listed,
    "vital-context": vital_tables.context,
    "vital-not-today": vital_tables.not_today,
    "medication-strength": prescriptions.strength,
    "medication-table": prescriptions.table,
    "medication-frequency": prescriptions.frequency,
    "medication-taper": prescriptions.taper,
    "medication-previous": prescriptions.changed,
    "medication-several": prescriptions.several,
    "medication-struck": prescriptions.struck,
    "medication-ticked": prescriptions.ticked,
    "medication-other-person": contexts.other_persons_drug,
    "allergy-list": contexts.allergies,
    "lists-beside": contexts.lists_beside,
    "form-columns": forms.columns,
    "form-box-after": forms.after,
    "form-beside": forms.beside,
    "sentence-earlier": contexts.earlier,
    "sentence-imagined": contexts.imagined,
    "sentence-doubted": contexts.doubted,
    "sentence-persons": contexts.persons,
    "sentence-stated-anyway": contexts.stated_anyway,
    "sentence-lists": contexts.lists,
    "sentence-lists-both": contexts.lists_and_stated,
    "lab-spaces": lab_mixed.spaces,
    "lab-specimens": lab_mixed.specimens,
    "lab-results-in-words": lab_mixed.words,
    "lab-signed": lab_mixed.signed,
    "lab-counts": lab_mixed.counts,
    "lab-double": lab_mixed.double,
    "lab-prose": lab_mixed.prose,
    "lab-limits": lab_mixed.limits,
    "number-lookalike": lookalikes.numbers,
    "vital-beside-numbers": lookalikes.beside_vitals,
    "regimen-lines": regimens.lines,
    "regimen-ends": regimens.ends,
    "regimen-goes-on": regimens.goes_on,
    "regimen-sections": regimens.sections,
    "regimen-several-lines": regimens.several_lines,
    "cue-no": cues.answered_no,
    "cue-yes": cues.answered_yes,
    "cue-only-named": cues.only_named,
    "cue-people": cues.people,
    "cue-marks": cues.mixed_marks,
    "cue-family-list": cues.family_list,
    "wide-tests": wide.tests,
    "wide-drugs": wide.drugs,
    "wide-denied": wide.denied,
    "wide-stated": wide.stated,
    "wide-aside": wide.aside,
    "wide-lists": wide.lists,
    "page": wide.page,
    "lab-unit-rows": lab_details.unit_rows,
    "vital-prose": vital_tables.prose,
    "cue-more": cues.more,
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
