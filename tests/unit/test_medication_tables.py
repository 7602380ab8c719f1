"""Medication tables are read by their header; a row that the header does not explain is flagged."""

from __future__ import annotations

from tests.unit.test_medication_doubts import medications


def test_each_cell_has_the_meaning_of_its_column() -> None:
    text = (
        "Medication\tRoute\tStatus\tStrength\tDose\tFrequency\n"
        "Ramipril\tPO\tActive\t5 mg\t2 capsules\tonce daily\n"
        "Bisoprolol\toral\tOn hold\t\t2.5 mg\tBD\n"
        "Clopidogrel\t\tDiscontinued\t75 mg\t\tdaily"
    )

    first, second, third = medications(text, "MEDICATIONS")

    assert (first.strength, first.dose, first.frequency) == ("5 mg", "2 capsules", "once daily")
    assert (first.route, first.status) == ("PO", "active")
    assert (second.dose, second.frequency, second.status) == ("2.5 mg", "BD", "on_hold")
    assert (third.dose, third.status, third.temporality) == (None, "stopped", "historical")


def test_columns_of_blanks_are_matched_by_their_place() -> None:
    text = (
        "Drug           Dose       Route     Frequency\n"
        "Ramipril       5 mg       PO        daily\n"
        "Bisoprolol                PO        daily"
    )

    first, second = medications(text, "MEDICATIONS")

    assert (first.dose, second.dose) == ("5 mg", None)
    assert second.frequency == "daily"


def test_an_old_dose_is_kept_beside_the_new_dose() -> None:
    (found,) = medications(
        "Medication\tOld dose\tNew dose\tFrequency\nRamipril\t5 mg\t10 mg\tdaily", "MEDICATIONS"
    )

    assert (found.dose, found.previous_dose, found.status) == ("10 mg", "5 mg", "changed")


def test_a_row_with_a_strange_cell_is_not_understood() -> None:
    text = (
        "Medication\tDose\tFrequency\tStatus\n"
        "Ramipril\t5 mg\tnow and then\tActive\n"
        "Bisoprolol\t2.5 mg\tdaily\tsee letter\n"
        "Clopidogrel\t75 or 150\tdaily\tActive\n"
        "Furosemide\t40 mg\tdaily\tActive\tyes\tno"
    )

    found = medications(text, "MEDICATIONS")

    assert [e.name for e in found] == ["Ramipril", "Bisoprolol", "Clopidogrel", "Furosemide"]
    assert {e.rule for e in found} == {"med.table-not-understood.v1"}
    assert all(e.dose is None and e.frequency is None for e in found)


def test_a_dose_in_two_cells_that_disagree_is_not_understood() -> None:
    (found,) = medications(
        "Medication\tDose\tSig\nPrednisolone\t40 mg\tdaily for 3 days, then 20 mg daily",
        "MEDICATIONS",
    )

    assert found.rule == "med.table-not-understood.v1"
