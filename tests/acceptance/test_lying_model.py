"""A model that answers in good form but wrongly causes no false publication."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from pipeline.models import (
    Batch,
    Encounter,
    EncounterResult,
    Entity,
    Job,
    PageAssignment,
    ShellFile,
    Summary,
)
from pipeline.providers.prompts import Question
from pipeline.workers import run_step
from tests.support import records
from tests.support.lying_model import Say, lying_model
from tests.support.record_runs import astray
from tests.support.short_records import DRUG, short_record

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("acceptance-liar")]


def discovered_by(say: Say, folder: Path, visits: int = 2) -> ShellFile:
    """Run a record of one-page visits up to the end of Pass 0.5 with this model."""
    received = records.submit(short_record(folder / "record.pdf", visits))
    run_step.run_step("pages")
    with lying_model(say):
        run_step.run_step("pass05")
    return ShellFile.objects.get(id=received.shell_file_id)


def detected_by(say: Say, path: Path) -> ShellFile:
    """Find encounters with the local engine, and entities with this model."""
    received = records.submit(path)
    run_step.run_step("pages")
    run_step.run_step("pass05")
    with lying_model(say):
        run_step.run_step("pass1")
    return ShellFile.objects.get(id=received.shell_file_id)


def warnings_of(record: ShellFile) -> list[dict[str, Any]]:
    """Return the warnings without the one about the settings: these tests change the provider."""
    return [each for each in record.warnings if each["code"] != "SETTINGS_DIFFER"]


def job_of(record: ShellFile) -> Any:
    return Job.objects.get(shell_file=record)


def explained(record: ShellFile) -> str:
    out = io.StringIO()
    call_command("explain", str(record.id), "--all", stdout=out)
    return out.getvalue()


def entity(quote: str, page: int, **fields: Any) -> dict[str, Any]:
    return {"category": "medication", "page": page, "quote": quote, "name": quote, **fields}


def visit(first: int, last: int = 0, **fields: Any) -> dict[str, Any]:
    spans = [{"page": page} for page in range(first, (last or first) + 1)]
    return {"encounter_type": "office_visit", "spans": spans, **fields}


def own_page(question: Question) -> int:
    return next(s.page for s in question.slices if not s.context)


def test_a_quote_without_a_place_is_kept_and_never_counted(tmp_path: Path) -> None:
    def say(question: Question) -> dict[str, Any]:
        page = own_page(question)
        return {"entities": [entity(DRUG, page), entity("warfarin 5 mg", page)]}

    record = detected_by(say, short_record(tmp_path / "record.pdf", 2))

    invented = Entity.objects.filter(shell_file=record, name="warfarin 5 mg")
    assert job_of(record).status == "completed"
    assert [(e.accepted, e.alignment, e.char_start) for e in invented] == [
        (False, "unaligned", None)
    ] * 2
    assert all("unaligned" in e.review_flags for e in invented)
    assert Summary.objects.get(shell_file=record).entities_extracted_total == 2
    assert Summary.objects.get(shell_file=record).manual_review_required
    assert not astray(record)


def test_a_quote_of_another_encounter_on_the_same_page_is_not_accepted() -> None:
    def say(question: Question) -> dict[str, Any]:
        return {
            "entities": [
                entity(quote, page)
                for page in range(1, 6)
                for quote in ("Hemoglobin A1c", "Wexcombe", "WEXCOMBE DIAGNOSTICS")
            ]
        }

    record = detected_by(say, records.LAB)

    assert job_of(record).status == "completed"
    assert Entity.objects.filter(shell_file=record, accepted=True).exists()
    assert not astray(record)


def test_a_page_that_the_batch_does_not_hold_is_not_taken_from_the_reply(tmp_path: Path) -> None:
    def say(question: Question) -> dict[str, Any]:
        return {"entities": [entity("nowhere at all", 999_999), entity(DRUG, 999_999)]}

    record = detected_by(say, short_record(tmp_path / "record.pdf", 2))

    assert job_of(record).status == "completed"
    found = Entity.objects.filter(shell_file=record)
    assert {e.page_number for e in found} <= {1, 2}
    assert not astray(record)


def test_the_same_mention_said_again_and_again_is_published_once(tmp_path: Path) -> None:
    def say(question: Question) -> dict[str, Any]:
        return {"entities": [entity(DRUG, own_page(question))] * 50}

    record = detected_by(say, short_record(tmp_path / "record.pdf", 2))

    assert Entity.objects.filter(shell_file=record).count() == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"value": "1\u0000\ud800", "unit": "\u0000", "rule": "\u0000x"},
        {"date": "2024-13-45"},
        {"date": "0000-00-00"},
        {"date": "tomorrow"},
        {"start": 2**40},
        {"dose": "9" * 100_000},
        {"zone": None, "negated": None, "engine_confidence": 1.0},
    ],
    ids=lambda fields: "+".join(fields),
)
def test_values_that_no_column_can_store_stop_no_record(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    def say(question: Question) -> dict[str, Any]:
        return {"entities": [entity(DRUG, own_page(question)) | fields]}

    record = detected_by(say, short_record(tmp_path / "record.pdf", 1))

    assert job_of(record).last_error is None
    (found,) = Entity.objects.filter(shell_file=record)
    invented = [
        name for name in ("value", "unit", "date", "dose") if fields.get(name, "").strip("\0")
    ]
    assert {f"not_in_quote:{name}" for name in invented} <= {*found.review_flags}
    assert found.accepted is not bool(invented)


@pytest.mark.parametrize(
    "fields",
    [
        {"category": "gossip"},
        {"page": 0},
        {"page": 10**30},
        {"quote": ""},
        {"name": "\u0000"},
        {"engine_confidence": 7.0},
    ],
    ids=lambda fields: "+".join(fields),
)
def test_a_reply_out_of_bounds_is_tried_again_once_and_fails_as_its_shape(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    def say(question: Question) -> dict[str, Any]:
        return {"entities": [entity(DRUG, own_page(question)) | fields]}

    record = detected_by(say, short_record(tmp_path / "record.pdf", 1))

    (batch,) = Batch.objects.filter(pass1_encounter_result__shell_file=record)
    # The second reply is the same text, so a third call would be wasted.
    assert (batch.status, batch.attempt_count) == ("failed", 2)
    assert batch.error_code == "PARSE_SCHEMA"
    assert (batch.error_context or {})["final_underlying_error"] == "PARSE_SCHEMA"
    assert (job_of(record).status, job_of(record).retry_count) == ("failed", 0)


def test_a_bad_entity_costs_only_itself_and_is_reported(tmp_path: Path) -> None:
    def say(question: Question) -> dict[str, Any]:
        page = own_page(question)
        good = [
            entity(DRUG, page),
            entity("Hypertension", page, category="condition"),
            entity("Asthma", page, category="condition"),
            entity("blood pressure", page, category="vital"),
        ]
        bad = [entity(DRUG, page, engine_confidence=95)] if page == 2 else []
        return {"entities": [*good, *bad], "zones": [{"zone_type": "attic"}] if bad else []}

    record = detected_by(say, short_record(tmp_path / "record.pdf", 2))

    assert job_of(record).status == "completed"
    assert Entity.objects.filter(shell_file=record, accepted=True).count() == 8
    (warning,) = warnings_of(record)
    assert (warning["code"], warning["count"], warning["pages"]) == ("ITEM_REJECTED", 2, [2])
    assert "(ITEM_REJECTED ×2)" in explained(record)
    results = EncounterResult.objects.filter(shell_file=record)
    assert sorted(len(result.warnings) for result in results) == [0, 1]
    assert Summary.objects.get(shell_file=record).manual_review_required


def test_a_bad_encounter_costs_only_itself_and_is_reported(tmp_path: Path) -> None:
    def say(question: Question) -> dict[str, Any]:
        return {"encounters": [*(visit(page) for page in range(1, 7)), {"encounter_type": "x"}]}

    record = discovered_by(say, tmp_path, visits=6)

    assert (job_of(record).status, job_of(record).current_step) == ("pending", "pass1")
    (warning,) = warnings_of(record)
    assert (warning["code"], warning["count"]) == ("ITEM_REJECTED", 1)
    assert warning["pages"] == [1, 2, 3, 4, 5, 6]
    assert Summary.objects.get(shell_file=record).manual_review_required


def test_an_encounter_without_entities_succeeds_with_a_warning(tmp_path: Path) -> None:
    record = detected_by(
        lambda question: {"entities": []}, short_record(tmp_path / "record.pdf", 2)
    )

    assert job_of(record).status == "completed"
    for result in EncounterResult.objects.filter(shell_file=record):
        assert result.warnings == [{"code": "NO_ENTITIES_FOUND"}]
    assert "NO_ENTITIES_FOUND" in {warning["code"] for warning in record.warnings}


def test_a_record_in_which_no_encounter_is_found_completes_with_a_warning(tmp_path: Path) -> None:
    record = discovered_by(lambda question: {"encounters": []}, tmp_path)

    run_step.run_step("pass1")

    record.refresh_from_db()
    assert job_of(record).status == "completed"
    assert record.status == "pass1_complete"
    assert {warning["code"] for warning in warnings_of(record)} == {"NO_ENTITIES_FOUND"}
    reasons = PageAssignment.objects.filter(discovery_session__shell_file=record)
    assert not reasons.filter(reason=None).exists()


def test_encounters_that_claim_the_same_lines_share_no_character(tmp_path: Path) -> None:
    claims = [visit(1, 2), visit(1), visit(2), visit(1, 2, encounter_type="laboratory")]

    record = discovered_by(lambda question: {"encounters": claims}, tmp_path)

    assert (job_of(record).status, job_of(record).current_step) == ("pending", "pass1")
    for page in record.pages.all():
        runs = PageAssignment.objects.filter(
            discovery_session__shell_file=record, page_number=page.page_number
        ).order_by("start_offset")
        ends = [0, *(run.end_offset for run in runs)]
        assert [run.start_offset for run in runs] == ends[:-1]
        assert ends[-1] == len(page.text)


@pytest.mark.parametrize(
    "encounters",
    [
        [visit(99)],
        [{"encounter_type": "office_visit", "spans": []}],
        [visit(1) | {"spans": [{"page": 1, "first_line": 9, "last_line": 2}]}],
        [visit(1) | {"spans": [{"page": 1, "first_line": 90_000}, {"page": 2}]}],
    ],
    ids=["a page of no chunk", "no span", "a span that ends before it begins", "a line of no page"],
)
def test_a_reply_that_names_no_text_of_its_chunk_fails_the_pass(
    tmp_path: Path, encounters: list[Any]
) -> None:
    record = discovered_by(lambda question: {"encounters": encounters}, tmp_path)

    assert (job_of(record).status, job_of(record).current_step) == ("failed", "pass05")
    assert job_of(record).error_details["underlying_error"] == "PARSE_SCHEMA"
    assert not Encounter.objects.filter(shell_file=record).exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"date_start": "2024-02-31", "date_end": "yesterday"},
        {"date_start": "2024-05-01", "date_end": "2023-05-01"},
        {"date_start": "9999-12-31"},
        {"facility": "x\u0000y", "clinician": "\ud800"},
        {"facility": "F" * 50_000},
        {"patient_birth_date": "31/12/1999", "patient_name": "", "patient_identifier": "\u0000"},
    ],
    ids=lambda fields: "+".join(fields),
)
def test_odd_facts_of_an_encounter_stop_no_record(tmp_path: Path, fields: dict[str, Any]) -> None:
    record = discovered_by(lambda question: {"encounters": [visit(1, 2) | fields]}, tmp_path)

    run_step.run_step("pass1")

    assert job_of(record).last_error is None
    assert job_of(record).status == "completed"
    for encounter in Encounter.objects.filter(shell_file=record):
        start, end = encounter.encounter_date_start, encounter.encounter_date_end
        assert start is None or end is None or start <= end
