"""Allergens that are printed like a medication that the patient takes (`Lisinopril 20 mg daily`).

A list of medications may begin below a heading that no rule knows. Such a drug is not understood.
"""

from __future__ import annotations

import re

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import unclear_name

_TAKEN = re.compile(
    r"[ ]+(?:[A-Za-z]+[ ]+){0,2}\d[\d.,/-]*[ ]?(?:mg|mcg|µg|g|mL|units?|mEq|IU|%|puffs?"
    r"|tab\w*|cap\w*)(?![\w/])[^\n.;:(–-]{0,40}?\b(?:daily|nightly|weekly|monthly|once|twice|bid"
    r"|tid|qid|qd|qhs|prn|q\d+h|every|[ob]d|tds|qds|at[ ](?:night|bedtime)|as[ ]needed"
    r"|per[ ]day|a[ ]day|hourly)\b",
    re.I,
)


def flag_dosed_allergens(reading: DocumentState) -> None:
    """Replace allergens with an amount and a frequency by findings that are not understood."""
    reading.findings = [
        unclear_name(each, "dosed")
        if each.category == "allergy"
        and not each.reaction
        and _TAKEN.match(reading.text, each.head_end)
        else each
        for each in reading.findings
    ]
