"""The lists across encounters that a careful reader keeps, with their contradictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from samples.truth import ContradictionTruth, EntityTruth, ListedTruth, ListsTruth, Record

APART: tuple[tuple[str, str], ...] = (
    ("glucose", "glucose, fingerstick"),
    ("glucose", "glucose, urine"),
    ("glucose", "pleural fluid glucose"),
    ("wbc", "wbc, urine"),
    ("rbc", "rbc, urine"),
    ("wbc, urine", "rbc, urine"),
    ("hemoglobin", "hemoglobin a1c"),
    ("neutrophils", "neutrophils (absolute)"),
    ("albumin", "albumin/creatinine ratio"),
    ("albumin", "microalbumin, urine"),
    ("bun", "bun/creatinine ratio"),
    ("creatinine", "bun/creatinine ratio"),
    ("iron", "transferrin saturation"),
    ("vitamin b12", "vitamin d, 25-hydroxy"),
    ("bnp", "nt-probnp"),
    ("ldl cholesterol", "hdl cholesterol"),
    ("total cholesterol", "ldl cholesterol"),
    ("ast", "alt"),
    ("chloride", "potassium"),
    ("metoprolol succinate", "metoprolol tartrate"),
    ("potassium chloride", "magnesium sulfate"),
    ("prednisone", "spironolactone"),
    ("penicillin", "codeine"),
    ("hypertension", "orthostatic hypotension"),
    ("type 2 diabetes", "diabetic neuropathy"),
    ("iron deficiency", "anemia"),
    ("hypokalemia", "hypomagnesemia"),
    ("hyperlipidemia", "hypertension"),
    ("osteoporosis", "osteopenia"),
    ("osteoporosis", "osteoarthritis"),
    ("acute kidney injury", "chronic kidney disease"),
    ("copd", "asthma"),
    ("pulmonary edema", "pulmonary embolism"),
)
"""Names that no entry may join; a record has the pairs of which it prints both names."""


def _medication(name: str, encounter: int, reason: str) -> ContradictionTruth:
    return ContradictionTruth(list="medication", name=name, encounter=encounter, reason=reason)


CONTRADICTIONS: dict[str, list[ContradictionTruth]] = {
    "visits_20p_4enc": [
        _medication("aspirin", 0, "listed as taken, and stopped in the plan of the same day"),
        _medication("metoprolol succinate", 1, "25 mg daily at home, 50 mg daily prescribed"),
    ],
}
CONSISTENT: dict[str, list[ContradictionTruth]] = {
    "traps_10p": [
        _medication("prednisone", 3, "30 mg and 10 mg are two steps of one taper"),
        _medication("acetaminophen", 3, "500 mg is the dose before the change to 650 mg"),
        _medication("lisinopril", 0, "one dose"),
    ],
    "visits_20p_4enc": [
        _medication("allopurinol", 0, "one dose"),
        _medication("apixaban", 3, "one dose"),
    ],
    "scan_5p": [_medication("levothyroxine", 0, "one dose")],
}


FINDINGS = ("murmur", "rapid ventricular response")
"""Findings of an examination or a tracing, which are not always kept as problems."""
UNCERTAIN = {
    ("traps_10p", 3, "heart failure"),
    ("visits_20p_4enc", 0, "sinusitis"),
    ("visits_20p_4enc", 3, "tachycardia-induced cardiomyopathy"),
}
"""Present or past conditions that the text calls likely, probable or presumed: no entry."""


def of(name: str, record: Record) -> ListsTruth:
    """Return the lists of a record."""
    lists = {
        "problems": _listed(
            record,
            lambda e: e.category == "condition" and e.assertion in ("present", "historical"),
            name,
        ),
        "medications": _listed(
            record,
            lambda e: e.category == "medication" and e.assertion in ("present", "historical"),
            name,
        ),
        "allergies": _listed(record, lambda e: e.category == "allergy", name),
        "lab_series": _listed(record, lambda e: e.category == "lab", name, count=True),
    }
    optional = [each.name for each in lists["problems"] if each.name in FINDINGS]
    lists["problems"] = [each for each in lists["problems"] if each.name not in FINDINGS]
    names = {each.name for entries in lists.values() for each in entries}
    return ListsTruth(
        **lists,
        optional=optional,
        apart=[pair for pair in APART if names.issuperset(pair)],
        contradictions=CONTRADICTIONS.get(name, []),
        consistent=CONSISTENT.get(name, []),
    )


def _listed(
    record: Record, wanted: Callable[[EntityTruth], bool], name: str, *, count: bool = False
) -> list[ListedTruth]:
    found: dict[str, list[int]] = defaultdict(list)
    for encounter in record.encounters:
        # A page of another patient supports nothing in the lists of this patient.
        if not encounter.patient_mismatch:
            for entity in filter(wanted, encounter.entities):
                key = entity.name.casefold()
                if (name, encounter.index, key) not in UNCERTAIN:
                    found[key].append(encounter.index)
    return [
        ListedTruth(name=key, encounters=sorted(set(places)), values=len(places) if count else None)
        for key, places in sorted(found.items())
    ]
