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
