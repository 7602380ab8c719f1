"""A ticked box states its item. An unticked or unanswered box states nothing."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page

STATED = "stated"
DENIED = "denied"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("☐ Asthma\n☑ Gout\n☒ Lupus", {"Gout": STATED, "Lupus": STATED}),
        ("[ ] Asthma [x] Gout", {"Gout": STATED}),
        ("( ) Asthma (X) Gout ( ) Lupus", {"Gout": STATED}),
        ("__ Asthma  _x_ Gout", {"Gout": STATED}),
        ("Asthma [ ]  Gout [X]  Lupus [ ]", {"Gout": STATED}),
        ("Asthma ___  Gout _X_", {"Gout": STATED}),
        ("■ Gout □ Asthma", {"Gout": STATED}),
        ("● Gout ○ Asthma", {"Gout": STATED}),
        ("Past problems: [ ] asthma [x] gout", {"gout": STATED}),
        ("Asthma No [ ] Yes [X]", {"Asthma": STATED}),
        ("Asthma Yes [ ] No [x]", {"Asthma": DENIED}),
        ("Asthma: [ ] Yes [x] No   Gout: [x] Yes [ ] No", {"Asthma": DENIED, "Gout": STATED}),
        ("Asthma Yes [x] No [x]", {}),
        ("Asthma Yes [ ] No [ ]", {}),
        ("Asthma Yes / No", {}),
        ("Asthma: Y  Gout: N  Lupus: Y", {"Asthma": STATED, "Gout": DENIED, "Lupus": STATED}),
        ("Asthma (N)  Gout (Y)", {"Asthma": DENIED, "Gout": STATED}),
        ("Asthma? No", {"Asthma": DENIED}),
        ("Asthma No Gout Yes Lupus No", {"Asthma": DENIED, "Gout": STATED, "Lupus": DENIED}),
        ("[x] No asthma [x] Gout", {"asthma": DENIED, "Gout": STATED}),
        ("Asthma [-] Gout [+]", {"Asthma": DENIED, "Gout": STATED}),
        ("Asthma: no, gout: yes, lupus: no", {"Asthma": DENIED, "gout": STATED, "lupus": DENIED}),
        ("Asthma: N/A  Gout: unknown  Lupus: Yes", {"Lupus": STATED}),
        ("• Asthma\n• Gout", {"Asthma": STATED, "Gout": STATED}),
    ],
)
def test_boxes_decide_item_by_item(text: str, expected: dict[str, str]) -> None:
    entities = ask(page("PAST MEDICAL HISTORY\n" + text)).entities

    assert {e.name: DENIED if e.negated else STATED for e in entities} == expected


def test_an_unticked_statement_about_allergies_is_not_made() -> None:
    reply = ask(page("ALLERGIES\n[ ] NKDA\n[x] Codeine\n"))

    assert reply.no_known_allergies is None
    assert [(e.name, e.negated) for e in reply.entities] == [("Codeine", None)]


@pytest.mark.parametrize(
    ("text", "stated", "denied"),
    [
        ("Condition\tNo\tYes\nGout\t[x]\t[ ]\nLupus\t[ ]\t[x]", ["Lupus"], ["Gout"]),
        ("Condition\tYes\tNo\nGout\tX\t\nLupus\t\tX", ["Gout"], ["Lupus"]),
        ("Condition\tYes\tNo\nGout\t[X]\t[ ]\nLupus\t[ ]\t[X]", ["Gout"], ["Lupus"]),
        ("Condition\tYes\tNo\nGout\t☑\t☐\nLupus\t☐\t☒", ["Gout"], ["Lupus"]),
        ("Condition\tYes\tNo\nGout\t(x)\t( )\nLupus\t( )\t(x)", ["Gout"], ["Lupus"]),
        ("Condition\tSelf\tMother\nGout\t[ ]\t[x]\nLupus\t[x]\t[x]", ["Lupus"], []),
        ("Condition\tMother\tSelf\nGout\t[x]\t[ ]\nLupus\t\t[x]", [], []),
        ("Condition\tCurrent\tPast\tNever\nGout\t[x]\t[ ]\t[ ]\nLupus\t[ ]\t[ ]\t[x]",
         ["Gout"], ["Lupus"]),
        ("Condition\tYes\tNo\nGout\t[x]\t[x]\nLupus\t[ ]\t[ ]", [], []),
        ("[ ] Yes [x] No  Gout\n[x] Yes [ ] No  Lupus", ["Lupus"], ["Gout"]),
        ("Gout: Never\nLupus: Yes", ["Lupus"], ["Gout"]),
    ],
)  # fmt: skip
def test_columns_of_ticks_are_read_by_their_heads(
    text: str, stated: list[str], denied: list[str]
) -> None:
    found = [
        e for e in ask(page(f"MEDICAL HISTORY\n{text}\n")).entities if e.category == "condition"
    ]

    assert [e.name for e in found if e.negated is not True] == stated
    assert [e.name for e in found if e.negated is True] == denied
    assert all(e.experiencer in (None, "patient") for e in found)
