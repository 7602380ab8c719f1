"""The table of review flags is whole, documented, and decides about acceptance."""

from __future__ import annotations

import re

import pytest

from medproc.env import PROJECT_ROOT
from observability.phi import flag_words
from pipeline.clinical import enrichment_flags
from pipeline.migrations import _review_guard
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.page_checks import quote_checks
from pipeline.stages.pass1 import disputes
from pipeline.stages.pass1.review_flags import (
    CONTEXT_ONLY,
    TABLE,
    Flag,
    flagged,
    in_words,
    prevents_acceptance,
)

DOCS = PROJECT_ROOT / "docs" / "integrating.md"
PASS1 = PROJECT_ROOT / "pipeline" / "stages" / "pass1"


def test_every_flag_has_one_row_with_a_sentence_and_a_reason() -> None:
    assert sorted(row.flag for row in TABLE) == sorted(Flag)
    for row in TABLE:
        assert row.meaning.endswith(".")
        assert row.meaning.count(".") == 1
        assert row.reason.endswith(".")


def test_the_documentation_says_the_same_as_the_table() -> None:
    lines = DOCS.read_text(encoding="utf-8").splitlines()

    for row in TABLE:
        accepted = "no" if row.prevents else "yes"
        assert f"| `{row.flag.value}` | {row.meaning} | {accepted}. {row.reason} |" in lines
    documented = re.findall(r"^\| `(\w+)` \| .* \| (?:yes|no)\. ", "\n".join(lines), re.M)
    assert documented == [row.flag.value for row in TABLE]
    assert all(f"`{attribute}`" in " ".join(lines) for attribute in CONTEXT_ONLY)


def test_every_flag_is_set_somewhere() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in PASS1.glob("*.py")
        if path.name != "review_flags.py"
    )

    by_database = _review_guard.CREATE

    missing = [
        flag.name
        for flag in Flag
        if f"Flag.{flag.name}" not in code and f'"{flag.value}"' not in by_database
    ]

    assert missing == []


def test_no_module_writes_a_flag_that_the_table_lacks() -> None:
    codes = {flag.value for flag in Flag}

    for path in PASS1.glob("*.py"):
        if path.name != "review_flags.py":
            words = re.findall(r"\"([a-z_]+)\"", path.read_text(encoding="utf-8"))
            # `unaligned` and `relocated` are outcomes of the alignment too.
            assert codes & set(words) <= {"unaligned", "relocated"}, path.name


@pytest.mark.parametrize(
    "stored",
    [
        "unaligned",
        "row_not_understood",
        "not_in_quote:dose",
        "not_in_quote:negated",
        "disputed:value",
        "disputed:dose",
        "disputed:negated",
        "disputed:experiencer",
        "disputed:certainty",
        "disputed:temporality",
        "disputed:status",
        "implausible_value",
        "hidden_text",
        "addresses_a_model",
        "a_flag_of_a_later_version",
    ],
)
def test_what_may_be_wrong_about_the_patient_prevents_acceptance(stored: str) -> None:
    assert prevents_acceptance(stored)


@pytest.mark.parametrize(
    "stored",
    [
        "ambiguous_place",
        "relocated",
        "low_ocr_confidence",
        "unusual_size",
        "read_once",
        "disputed:reference_range",
        "disputed:abnormal_flag",
    ],
)
def test_a_doubt_beside_the_fact_is_only_shown(stored: str) -> None:
    assert not prevents_acceptance(stored)


def test_each_named_attribute_is_a_field_of_an_entity() -> None:
    fields = set(FoundEntity.model_fields)

    assert set(quote_checks.ATTRIBUTES) | set(disputes.ATTRIBUTES) | CONTEXT_ONLY <= fields


def test_a_flag_is_said_in_words() -> None:
    said = in_words(["disputed:previous_dose", "relocated", "disputed:unit", "from_the_future:x"])

    assert said == (
        "previous dose, unit: the local engine reads this attribute differently",
        "the quote is on another page than the reply said",
        "from the future x",
    )
    assert flagged(Flag.DISPUTED, "unit") == "disputed:unit"


def test_every_flag_of_pass2_has_a_sentence_that_the_documentation_repeats() -> None:
    text = DOCS.read_text(encoding="utf-8")

    assert list(enrichment_flags.MEANINGS) == list(enrichment_flags.EnrichmentFlag)
    for flag, meaning in enrichment_flags.MEANINGS.items():
        assert meaning.endswith(".")
        assert f"| `{flag.value}` | {meaning} |" in text


def test_flags_of_both_passes_are_sentences_with_their_attributes() -> None:
    said = flag_words.in_words(["code_uncertain", "not_grounded:dose", "not_grounded:route", "odd"])

    assert said == (
        "the page does not decide between the codes of the shortlist, so no code is set",
        "dose, route: the page does not state this attribute, so its value is left out",
        "odd",
    )
