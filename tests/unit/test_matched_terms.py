"""The source's own terms lead to a code, and no code is chosen that the text does not support.

The texts and their codes were written before the rules; the shortlists are those of the search.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.codes.search.terms import best_term, of_heading
from pipeline.providers.local.enrichment.code_choice import choose
from tests.support.enriched_text import evidence_in, facts_of

Case = tuple[str, str, str | None, tuple[Candidate, ...]]
_FILE = Path(__file__).parent.parent / "support" / "code_choices.tsv"
_MOST_LEFT_OUT = 21
"""Texts that have a code and get none.

A code that denies (`without …`) what a text does not mention is chosen for no text.
"""


def _cases() -> list[Case]:
    found: list[Case] = []
    offered: list[Candidate] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        first, second, third, *rest = line.split("\t")
        if first:
            offered = []
            found.append((first, second, None if third == "-" else third, ()))
            continue
        offered.append(
            Candidate(system="ICD10CM", code=second, display=third, score=0.5, term=rest[0])
        )
        found[-1] = (*found[-1][:3], tuple(offered))
    return found


CASES = _cases()


def _chosen(case: Case) -> str | None:
    text, quote, _, offered = case
    facts = facts_of(text)
    each = [f for f in facts if f.quote == quote][-1]
    found, evidence = evidence_in(text, each, facts, candidates=offered)
    code = choose(found, evidence).code
    return code.code if code else None


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_no_text_gets_a_wrong_code(case: Case) -> None:
    assert _chosen(case) in (None, case[2])


def test_most_texts_with_a_code_get_the_code() -> None:
    assert len(CASES) > 120
    left_out = [case[0] for case in CASES if case[2] and _chosen(case) is None]

    assert len(left_out) <= _MOST_LEFT_OUT, left_out


HYPERTENSION = (
    "high blood pressure",
    "hypertension (arterial) (benign) (essential) (malignant) (primary) (systemic)",
)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("High blood pressure", HYPERTENSION[0]),
        ("Hypertension", HYPERTENSION[1]),
        ("Benign hypertension", HYPERTENSION[1]),
        ("HTN", HYPERTENSION[1]),
        ("Essential hypertension", ""),
        ("", ""),
    ],
)
def test_the_term_that_fits_better_than_the_display_is_kept(text: str, term: str) -> None:
    assert best_term(text, "Essential (primary) hypertension", HYPERTENSION, ()) == term


def test_a_term_of_a_heading_takes_the_addition_of_the_code() -> None:
    heading = "Atherosclerotic heart disease of native coronary artery"
    terms = ["Coronary (artery) disease"]

    assert of_heading(f"{heading} without angina pectoris", heading, terms) == [
        "Coronary (artery) disease without angina pectoris"
    ]
    assert of_heading("Chronic ischemic heart disease, unspecified", heading, terms) == []


def test_a_term_of_a_heading_takes_the_side_of_the_code() -> None:
    heading = "Acute embolism and thrombosis of unspecified deep veins of lower extremity"
    left = "Acute embolism and thrombosis of unspecified deep veins of left lower extremity"

    assert of_heading(left, heading, ["DVT NOS"]) == ["DVT NOS, left"]


def test_facts_keep_the_term_in_their_json() -> None:
    offered = (
        Candidate(system="ICD10CM", code="A", display="a", score=0.0, term="b"),
        Candidate(system="ICD10CM", code="B", display="c", score=0.0),
    )
    facts = EntityFacts(
        key="e1", category="condition", name="x", quote="x", page=1, candidates=offered
    )

    stored = facts.as_json()

    assert stored["candidates"][0] == {"code": "ICD10CM|A", "display": "a", "term": "b"}
    assert "term" not in stored["candidates"][1]
    assert EntityFacts.of_json(stored) == facts


MIGRAINE = "Migraine, unspecified, not intractable, without status migrainosus"


def test_a_term_that_says_nos_is_better_than_an_unspecified_display_with_an_absence() -> None:
    assert best_term("Migraine", MIGRAINE, ["Migraine NOS"], []) == "Migraine NOS"
    assert best_term("Chronic migraine", MIGRAINE, ["Headache NOS"], []) == ""


@pytest.mark.parametrize(
    ("text", "display", "term", "is_chosen"),
    [
        ("Migraine.", MIGRAINE, "Migraine NOS", True),
        ("Migraine, intractable.", MIGRAINE, "Migraine NOS", False),
        (
            "Epilepsy.",
            "Epilepsy, unspecified, not intractable, without status epilepticus",
            "Epilepsy NOS",
            True,
        ),
        (
            "Enlarged prostate, nocturia.",
            "Benign prostatic hyperplasia without lower urinary tract symptoms",
            "Enlarged prostate NOS",
            False,
        ),
        (
            "Enlarged prostate.",
            "Benign prostatic hyperplasia without lower urinary tract symptoms",
            "Enlarged prostate NOS",
            True,
        ),
        (
            "Atherosclerotic heart disease, chest pain on exertion.",
            "Atherosclerotic heart disease of native coronary artery without angina pectoris",
            "Atherosclerotic heart disease NOS",
            False,
        ),
        ("Depression, in full remission.", "Depression, unspecified", "Depression NOS", False),
        ("Strep pharyngitis.", "Streptococcal pharyngitis", "", True),
        ("Hearing loss AD.", "Unspecified hearing loss, unspecified ear", "", False),
        ("Hearing loss.", "Unspecified hearing loss, unspecified ear", "", True),
    ],
)
def test_a_term_that_says_nos_is_for_a_text_without_details(
    text: str, display: str, term: str, is_chosen: bool
) -> None:
    offered = Candidate(system="ICD10CM", code="X00.0", display=display, score=0.9, term=term)
    first, *others = facts_of(text)

    facts, evidence = evidence_in(text, first, [first, *others], candidates=[offered])

    assert (choose(facts, evidence).code is not None) == is_chosen
