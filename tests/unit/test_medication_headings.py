"""The state of a list comes from its heading; what a rule cannot understand is flagged."""

from __future__ import annotations

import pytest

from tests.unit.test_medication_status import drugs


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Home medications (he has stopped taking all of these):\nRamipril 5 mg daily", "stopped"),
        ("MEDICATIONS\nMedications (on hold):\nRamipril 5 mg daily", "on_hold"),
        ("CURRENT MEDICATIONS (all held)\nRamipril 5 mg daily", "on_hold"),
        ("Medications (does not take any of these):\nRamipril 5 mg daily", "not_started"),
        ("MEDICATIONS\nMedications she no longer takes:\nRamipril 5 mg daily", "stopped"),
        ("MEDICATIONS - ALL ON HOLD\nRamipril 5 mg daily", "on_hold"),
        ("HOLD UNTIL FOLLOW-UP\nRamipril 5 mg daily", "on_hold"),
        ("Patient is not taking any of the following\nRamipril 5 mg daily", "not_started"),
        ("STOPPED ON ADMISSION\nRamipril 5 mg daily", "stopped"),
        ("HELD DURING ADMISSION\nRamipril 5 mg daily", "on_hold"),
        ("DISCHARGE MEDICATIONS\nHOLD:\nRamipril 5 mg daily", "on_hold"),
        ("DISCHARGE MEDICATIONS\nSTOP:\nRamipril 5 mg daily", "stopped"),
        ("MEDICATIONS\nON HOLD:\nRamipril 5 mg daily", "on_hold"),
        ("MEDICATIONS\nMedications (prior to admission):\nRamipril 5 mg daily", "active"),
        ("HOME MEDICATIONS (per husband's list)\nRamipril 5 mg daily", "active"),
        ("MEDICATIONS\nMedications (reviewed with patient):\nRamipril 5 mg daily", "active"),
    ],
)
def test_a_heading_gives_its_state_to_the_list(text: str, status: str) -> None:
    (drug,) = drugs(text)

    assert (drug.dose, drug.status) == ("5 mg", status)


@pytest.mark.parametrize("heading", ["CONTINUED AT DISCHARGE", "CONTINUE", "Continued"])
def test_a_heading_of_continued_drugs_ends_a_list_of_stopped_drugs(heading: str) -> None:
    text = f"DISCONTINUED AT DISCHARGE\nRamipril 5 mg daily\n\n{heading}\nBisoprolol 5 mg daily"

    stopped, taken = drugs(text)

    assert stopped.status == "stopped"
    assert taken.status != "stopped"
    assert taken.negated is not True


@pytest.mark.parametrize(
    "text",
    [
        "MEDICATIONS\nMedications (some on hold):\nRamipril 5 mg daily",
        "MEDICATIONS\nMedications (unverified):\nRamipril 5 mg daily",
        "MEDICATIONS\nRamipril 5 mg daily\nStopped by nephrology\nBisoprolol 5 mg daily",
        "MEDICATIONS\nRamipril 5 mg daily - HOLD 24 h before surgery",
        "HPI\nLast dose of ramipril 5 mg was on Monday.",
        "HPI\nThere is ramipril 5 mg in the cupboard.",
    ],
)
def test_words_that_leave_the_state_open_flag_the_drug(text: str) -> None:
    found = drugs(text)

    assert found
    assert all("not-understood" in drug.rule for drug in found)


@pytest.mark.parametrize("behind", ["not continued", "not resumed", "not to be restarted"])
def test_a_drug_that_is_not_continued_is_stopped(behind: str) -> None:
    (drug,) = drugs(f"HPI\nRamipril 5 mg was given on Monday; {behind}.")

    assert drug.status == "stopped"


@pytest.mark.parametrize(
    ("text", "strength", "dose"),
    [
        ("Mometasone 0.1% ointment", "0.1%", None),
        ("Hydrocortisone 1% cream topically", "1%", None),
        ("Timolol 0.5% 1 drop each eye BID", "0.5%", "1 drop"),
    ],
)
def test_a_percentage_is_the_content_of_a_product(
    text: str, strength: str, dose: str | None
) -> None:
    (drug,) = drugs(f"MEDICATIONS\n{text}")

    assert (drug.strength, drug.dose) == (strength, dose)


@pytest.mark.parametrize(
    "behind", ["increased from 16 units", "(raised from 16 units)", "reduced from 16 units"]
)
def test_a_change_behind_the_directions_gives_the_old_dose(behind: str) -> None:
    (drug,) = drugs(f"MEDICATIONS\nInsulin detemir 22 units at bedtime, {behind}")

    assert (drug.dose, drug.previous_dose, drug.status) == ("22 units", "16 units", "changed")


def test_a_change_to_another_dose_than_the_printed_dose_is_not_understood() -> None:
    (drug,) = drugs("MEDICATIONS\nRamipril 5 mg daily, changed from 2.5 mg to 10 mg")

    assert drug.dose is None
    assert "not-understood" in drug.rule
