"""Does the one-time work of the engine: compiles the patterns and reads the word lists.

A worker that has work calls `warm_up` before it forks, so that its later horses inherit the result.
"""

from __future__ import annotations

from dataclasses import fields, replace

from pipeline.clinical.facts import EntityFacts
from pipeline.core.types import PageSlice
from pipeline.providers.local import answer_to
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundEntity

_NOTE = """\
OFFICE VISIT
Patient: Example, Ann
DOB: 02/03/1960
Date of Service: 05/06/2020

ALLERGIES
Penicillin - hives

VITAL SIGNS
BP 128/76 mmHg, HR 72 bpm, Temp 37.1 C, Weight 81.5 kg

MEDICATIONS
Metformin 500 mg by mouth twice daily for type 2 diabetes

LABORATORY
Test            Result    Flag    Units       Reference Range
Sodium          140               mmol/L      135-145

IMMUNIZATIONS
Influenza vaccine 05/06/2020

ASSESSMENT AND PLAN
Mother had breast cancer. No chest pain. Possible pneumonia. Appendectomy in 2001.
Stop lisinopril 10 mg daily because of cough.
"""
"""An invented page that most rules have something to do with."""


def warm_up() -> None:
    """Answer one question of each kind about an invented page."""
    page = PageSlice(page=1, start=0, text=_NOTE)
    about = Question(kind="discovery", item_token="", include_zones=True, slices=(page,))
    answer_to(about)
    found = detect(replace(about, kind="entities")).entities
    facts = tuple(_facts(f"e{number}", each) for number, each in enumerate(found, 1))
    answer_to(replace(about, kind="enrichment", facts=facts))
    answer_to(replace(about, kind="narrative", facts=facts, limits={"sentences": 20}))


def _facts(key: str, found: FoundEntity) -> EntityFacts:
    known = {each.name for each in fields(EntityFacts)}
    return EntityFacts(key=key, **{name: value for name, value in found if name in known})
