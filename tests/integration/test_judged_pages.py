"""What the step says about the pages of a record when all pages are read."""

from __future__ import annotations

import pytest

from pipeline.core.errors import ErrorCode
from pipeline.core.states import Step
from pipeline.execution.step_result import StepCompleted, StepFailed
from pipeline.models import Page, Session, ShellFile
from pipeline.stages.pages import judged
from pipeline.transitions import Lease
from tests.support.rows import a_job

Read = tuple[str, float | None, list[str]]
"""Source, confidence of OCR and warnings of a page."""
GOOD: Read = ("text_layer", None, [])


def a_lease(*pages: Read) -> Lease:
    job = a_job(step=Step.PAGES)
    for number, (source, confidence, warnings) in enumerate(pages, start=1):
        Page.objects.create(
            shell_file_id=job.shell_file_id,
            page_number=number,
            text="",
            source=source,
            ocr_confidence=confidence,
            width=612,
            height=792,
            warnings=warnings,
        )
    return Lease(
        job_id=job.id,
        shell_file_id=job.shell_file_id,
        session_id=Session.objects.get(shell_file=job.shell_file_id).id,
        step=Step.PAGES,
        gen=1,
        worker_id="test",
    )


@pytest.mark.django_db
def test_each_doubt_about_a_page_is_one_warning_with_its_pages() -> None:
    lease = a_lease(
        ("ocr", 20.0, []),
        ("damaged", None, []),
        ("text_layer", None, ["hidden_text", "partly_read"]),
        ("mixed", 10.0, ["partly_read"]),
        ("text_layer", None, ["attachments", "repaired"]),
        ("ocr", 90.0, ["further_pictures"]),
        GOOD,
    )

    result = judged(lease)

    assert isinstance(result, StepCompleted)
    result.publish()
    record = ShellFile.objects.get(id=lease.shell_file_id)
    assert [(each["code"], each["pages"]) for each in record.warnings] == [
        ("OCR_QUALITY_LOW", [1, 4]),
        ("INPUT_INVALID", [2]),
        ("INPUT_INVALID", [3]),
        ("PARTLY_READ", [3, 4]),
        ("PARTLY_READ", [5]),
        ("PARTLY_READ", [6]),
    ]


@pytest.mark.django_db
def test_a_record_without_doubts_has_no_warning() -> None:
    lease = a_lease(GOOD, ("ocr", 90.0, ["repaired"]))

    result = judged(lease)

    assert isinstance(result, StepCompleted)
    result.publish()
    assert ShellFile.objects.get(id=lease.shell_file_id).warnings == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("pages", "code"),
    [
        ((("ocr", 20.0, []), ("ocr", 39.9, []), ("blank", None, [])), ErrorCode.OCR_QUALITY_LOW),
        ((("damaged", None, []), ("damaged", None, [])), ErrorCode.INPUT_INVALID),
    ],
)
def test_a_record_without_a_usable_page_fails(pages: tuple[Read, ...], code: ErrorCode) -> None:
    result = judged(a_lease(*pages))

    assert isinstance(result, StepFailed)
    assert result.failure.code == code


@pytest.mark.django_db
def test_a_text_layer_with_one_poor_part_is_no_poor_scan() -> None:
    assert isinstance(judged(a_lease(("mixed", 10.0, []))), StepCompleted)
