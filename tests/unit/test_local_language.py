"""The local engine reports a page that is not English, and extracts nothing from the page."""

from __future__ import annotations

import pytest

from pipeline.providers.local.text.language import language_of
from tests.unit.test_local_provider import ask, page

SPANISH = (
    "La paciente refiere dolor en el pecho desde hace tres días y fue tratada con aspirina por "
    "su médico. No presenta fiebre. Se recomienda reposo y control en la clínica después "
    "de una semana."
)
POLISH = (
    "Pacjent został przyjęty do szpitala z powodu bólu w klatce piersiowej. Nie stwierdzono zmian "
    "w badaniu EKG. Zalecono leczenie zachowawcze oraz kontrolę w poradni za dwa tygodnie."
)
TABLE = (
    "LABORATORY REPORT\nTEST RESULT FLAG UNITS REFERENCE\nSodium 138 mmol/L 135-145\nPotassium 5.3 "
    "H mmol/L 3.5-5.1\nCreatinine 1.4 H mg/dL 0.7-1.3\nGlucose 168 H mg/dL 70-99\nALT 34 U/L 0-44\n"
    "AST 31 U/L 0-40\nTSH 2.1 mIU/L 0.4-4.5\n"
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (SPANISH, "es"),
        (POLISH, "pl"),
        ("المريض يعاني من ألم في الصدر", "ar"),
        ("既往歴に肺炎がある。発熱を確認した。", "ja"),
        ("患者有肺炎，今天发热。", "zh"),
        ("У пациента пневмония", "ru"),
        (TABLE, "en"),
        ("", "en"),
        ("HTN, DM2, s/p CABG", "en"),
        ("She denies fever and was seen in the clinic for a cough.", "en"),
    ],
)
def test_the_language_of_a_page_is_recognised(text: str, language: str) -> None:
    assert language_of(text) == language


def test_nothing_is_taken_from_a_page_in_another_language() -> None:
    reply = ask(page("He takes aspirin 81 mg daily and has asthma.", 1), page(SPANISH, 2))

    assert reply.unsupported_pages == [2]
    assert {e.page for e in reply.entities} == {1}


def test_the_main_language_is_that_of_most_of_the_text() -> None:
    assert ask(page("No cough.", 1), page(SPANISH, 2)).language == "es"
    assert ask(page(TABLE, 1)).language == "en"


def test_an_unsupported_context_page_is_not_listed() -> None:
    reply = ask(page(SPANISH, 1, context=True), page("Denies fever and has a cough.", 2))

    assert reply.unsupported_pages == []
    assert reply.language == "en"
