"""The code search on a part of ICD-10-CM that the installed package provides."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline.clinical.facts import Candidate
from pipeline.codes.search import index, staging
from pipeline.codes.search.search import SYSTEMS, Asked, shortlists
from pipeline.migrations import _pgvector
from pipeline.models import CodeEntry, CodeSystem, CodeWord
from tests.support.code_rows import icd_rows, load_icd_part

pytestmark = pytest.mark.django_db

HOSTILE = (
    "", "\x00", "a\x00b", "x" * 2000, "hypertension " * 200, "' | !& ():* <->\\", "123 456", "٣٤",
    "糖尿病", "сахарный диабет", "\ud800 \udfff", "\ue000\ue001", "'; DROP TABLE codes; --",
    "%s %(x)s", "{1:2}/3", "[1,2]", "-" * 50, "no", "L", "a" * 70 + " " + "b" * 70, "(((", "🤒",
)  # fmt: skip


@pytest.fixture(autouse=True)
def system() -> CodeSystem:
    return load_icd_part()


def found(text: str, limit: int = 10) -> list[Candidate]:
    asked = Asked(text, "condition")
    return shortlists([asked], limit)[asked]


def codes(text: str, limit: int = 10) -> list[str]:
    return [each.code for each in found(text, limit)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("HTN", "I10"),
        ("T2DM w/ neuropathy", "E11.40"),
        ("COPD exac", "J44.1"),
        ("CKD 3b", "N18.32"),
        ("EtOH cirrhosis w ascites", "K70.31"),
        ("GERD w/o esophagitis", "K21.9"),
        ("severe preeclampsia, 3rd trimester", "O14.13"),
        ("R ankle sprain, initial visit", "S93.401A"),
        ("R ankle sprain, sequela", "S93.401S"),
        ("R carpal tunnel", "G56.01"),
        ("acute on chronic systolic CHF", "I50.23"),
        ("passecl ouf", "R55"),
        ("hypenlipidemia", "E78.5"),
    ],
)
def test_the_best_code(text: str, code: str) -> None:
    assert codes(text)[0] == code


@pytest.mark.parametrize("text", ["L knee OA", "left hip fx", "pain LLQ", "L ear infection"])
def test_the_right_side_is_not_offered_for_the_left(text: str) -> None:
    displays = [each.display.lower() for each in found(text, 50)]

    assert any("left" in display for display in displays)
    assert not any(re.search(r"\b(right|bilateral)\b", display) for display in displays)


@pytest.mark.parametrize("text", ["knee OA", "hip fx", "carpal tunnel syndrome", "ankle sprain"])
def test_a_text_without_a_side_gets_the_code_without_a_side_first(text: str) -> None:
    first = found(text)[0]

    assert not re.search(r"\b(left|right|bilateral)\b", first.display.lower()), first.display


def test_headings_are_no_candidates_and_their_terms_lead_to_the_codes_below() -> None:
    billable = {row.code for row in icd_rows()[0] if row.billable}

    assert set(codes("osteoarthritis of knee", 50)) <= billable
    assert codes("HFrEF")[0].startswith("I50.2")


def test_reasons_and_scores() -> None:
    best, *_, last = found("L knee OA")

    assert best.reason == "2 of 2 words; laterality left"
    assert 0 < last.score < best.score <= 1
    assert "similar" in found("hypenlipidemia")[0].reason


@pytest.mark.parametrize("category", [*SYSTEMS, "unknown"])
def test_hostile_texts_are_harmless(category: str) -> None:
    asked = [Asked(text, category) for text in HOSTILE]

    lists = shortlists(asked, 10)

    assert set(lists) == set(asked)
    assert all(len(each) <= 10 for each in lists.values())


def test_misread_digits_are_not_corrected() -> None:
    assert all(each.score < 0.5 for each in found("CKD stage 8b"))


def test_statements_do_not_grow_with_the_queries() -> None:
    with CaptureQueriesContext(connection) as one:
        shortlists([Asked("HTN misreacl", "condition")], 10)
    with CaptureQueriesContext(connection) as many:
        shortlists([Asked(f"HTN misreacl {n}", "condition") for n in range(200)], 10)

    assert len(many) <= len(one) <= 6


def test_an_unloaded_system_offers_nothing() -> None:
    assert shortlists([Asked("warfarin", "medication")], 10) == {
        Asked("warfarin", "medication"): []
    }


def test_filling_again_replaces_the_index() -> None:
    before = CodeEntry.objects.count(), CodeWord.objects.count()

    index.fill("ICD10CM")

    assert (CodeEntry.objects.count(), CodeWord.objects.count()) == before


def test_the_size_of_a_part_changes_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    before = index_rows()
    monkeypatch.setattr(staging, "PART", 7)
    monkeypatch.setattr(index, "PART", 7)

    index.fill("ICD10CM")

    assert index_rows() == before


def index_rows() -> list[list[tuple[object, ...]]]:
    columns = "words", "weights", "weight", "codes", "facets", "lexemes"
    words = CodeWord.objects.order_by("id").values_list("word", "lexeme", "entry_count", "length")
    return [list(CodeEntry.objects.order_by("id").values_list(*columns)), list(words)]


def test_a_server_without_pgvector_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, None])

    class Cursor:
        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def execute(self, _: str) -> None:
            pass

        def fetchone(self) -> None:
            return next(answers)

    class Editor:
        class connection:  # noqa: N801 - the name of Django's attribute
            alias = "default"
            cursor = Cursor

    with pytest.raises(CommandError, match="PostgreSQL has no pgvector: install pgvector"):
        _pgvector.create_vector(None, Editor)  # type: ignore[arg-type]  # a server without pgvector
