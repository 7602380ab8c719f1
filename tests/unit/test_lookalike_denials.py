"""Words of negation beside a finding that they do not deny."""

from __future__ import annotations

import pytest

from tests.support.generator.published import Row, published


def row_of(text: str, name: str) -> Row:
    (found,) = [row for row in published(text) if row["name"].lower() == name.lower()]
    return found


def is_flagged(row: Row) -> bool:
    return row["accepted"] is False and "row_not_understood" in row["review_flags"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HPI\nGram-negative pneumonia.", "pneumonia"),
        ("HPI\nTreated for culture-negative endocarditis.", "endocarditis"),
        ("HPI\nSmear negative tuberculosis.", "tuberculosis"),
        ("HPI\nTriple negative breast cancer.", "breast cancer"),
        ("HPI\nHBeAg-negative hepatitis B.", "hepatitis B"),
        ("HPI\nDenies any worsening of his headache.", "headache"),
        ("HPI\nNo significant improvement in her dyspnea.", "dyspnea"),
        ("HPI\nHas not noticed any change in the cough.", "cough"),
        ("HPI\nNo long-term sequelae of stroke.", "stroke"),
        ("HPI\nWithout complications from cirrhosis.", "cirrhosis"),
        ("HPI\nShe is no stranger to asthma.", "asthma"),
        ("HPI\nNo resolution of the pneumonia.", "pneumonia"),
        ("HPI\nNot infrequently he has headache.", "headache"),
    ],
)
def test_a_negation_of_something_else_does_not_deny_the_finding(text: str, name: str) -> None:
    assert row_of(text, name)["negated"] is not True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MEDICATIONS\nNo side effects from atorvastatin 40 mg daily.", "atorvastatin"),
        ("HPI\nShe has never missed a dose of levothyroxine.", "levothyroxine"),
        ("HPI\nNo trouble tolerating metformin.", "metformin"),
        ("HPI\nKlebsiella is gram-negative; started on ceftriaxone 1 g IV daily.", "ceftriaxone"),
    ],
)
def test_a_negation_of_something_else_does_not_deny_the_drug(text: str, name: str) -> None:
    found = row_of(text, name)

    assert found["negated"] is not True
    assert found["status"] not in ("stopped", "not_started")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HPI\nHBV-negative, HIV-positive.", "HBV"),
        ("HPI\nHIV-negative man with syphilis.", "HIV"),
        ("HPI\nCOVID-negative on arrival.", "COVID"),
    ],
)
def test_a_compound_with_negative_denies_its_first_part(text: str, name: str) -> None:
    assert row_of(text, name)["negated"] is True


def test_a_compound_with_negative_denies_no_neighbour() -> None:
    text = "HPI\nHCV-negative, hepatitis B positive, syphilis."

    assert row_of(text, "hepatitis B")["negated"] is not True
    assert row_of(text, "syphilis")["negated"] is not True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HPI\nNo syncope until this week.", "syncope"),
        ("HPI\nHe never had gout till last spring.", "gout"),
        ("HPI\nShe did not have headaches until yesterday.", "headaches"),
        ("HPI\nHe has never had a seizure before.", "seizure"),
        ("HPI\nShe denies that the back pain is constant.", "back pain"),
        ("HPI\nDespite no cough, pneumonia was suspected.", "pneumonia"),
        ("HPI\nGiven the absence of rash, zoster is less likely than angina.", "angina"),
        ("HPI\nNo change in appetite, vomiting or diarrhea.", "vomiting"),
        ("HPI\nDenied by the insurer: MRI for back pain.", "back pain"),
    ],
)
def test_a_denial_that_leaves_the_finding_open_is_flagged(text: str, name: str) -> None:
    assert is_flagged(row_of(text, name))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HPI\nNo rash, itching, or swelling was noted.", "itching"),
        ("HPI\nDenies nausea, vomiting or diarrhea.", "vomiting"),
        ("HPI\nNo fever.", "fever"),
        ("HPI\nNo asthma exacerbation.", "asthma exacerbation"),
        ("ROS\nCough no, dyspnea none.", "dyspnea"),
        ("HPI\nNever smoked, drank or had pancreatitis.", "pancreatitis"),
        ("HPI\nHe does not smoke or have asthma.", "asthma"),
        ("ROS\nWheezing no, cough yes.", "wheezing"),
        ("HPI\nCT argues against the diagnosis of appendicitis.", "appendicitis"),
        ("HPI\nThe labs do not support a diagnosis of lupus.", "lupus"),
        ("HPI\nShe denies a prior diagnosis of asthma.", "asthma"),
    ],
)
def test_a_real_denial_stays_a_denial(text: str, name: str) -> None:
    found = row_of(text, name)

    assert found["negated"] is True
    assert found["accepted"] is True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("HPI\nNo evidence of metastasis on MRI.", "MRI"),
        ("HPI\nFailed to show appendicitis on ultrasound.", "ultrasound"),
        ("HPI\nNo complications during appendectomy.", "appendectomy"),
    ],
)
def test_the_means_of_a_negative_finding_is_not_denied(text: str, name: str) -> None:
    assert row_of(text, name)["negated"] is not True


@pytest.mark.parametrize(
    ("text", "name", "certainty"),
    [
        ("HPI\nLess likely sarcoidosis.", "sarcoidosis", "possible"),
        ("HPI\nInsufficient evidence to support a diagnosis of lupus.", "lupus", "possible"),
        ("HPI\nConsider a diagnosis of gout.", "gout", "possible"),
        ("HPI\nCannot rule in myocarditis.", "myocarditis", "possible"),
        ("HPI\nHe dreads dementia.", "dementia", "hypothetical"),
        ("HPI\nShe has read about lupus.", "lupus", "hypothetical"),
        ("PLAN\nFor headache please take acetaminophen 500 mg.", "headache", "hypothetical"),
        (
            "PLAN\nReviewed adverse effects of amiodarone such as dyspnea and hypothyroidism.",
            "dyspnea",
            "hypothetical",
        ),
        ("PLAN\nStroke code was called off.", "stroke", "hypothetical"),
    ],
)
def test_an_unstated_finding_is_not_certain(text: str, name: str, certainty: str) -> None:
    assert row_of(text, name)["certainty"] == certainty
