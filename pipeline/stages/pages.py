"""Pages: a record's text, page by page, from the text layer or by OCR.

The reader works in a child process that can be killed. Pages are written in chunks, so that a
crash loses one chunk at most. A file that cannot be read fails at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import cast

from django.conf import settings

from medproc.timing import scaled
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.documents import reader, storage
from pipeline.execution.heartbeat import call_with_lease, renew, with_lease
from pipeline.execution.preemption import PREEMPTED, Preemption
from pipeline.execution.reuse.pages import copy_pages
from pipeline.execution.shutdown import stop_requested
from pipeline.execution.step_result import (
    SIGTERM,
    StepCompleted,
    StepFailed,
    StepInterrupted,
    StepResult,
)
from pipeline.models import Job, Page, PageSource, Session, ShellFile, Summary
from pipeline.stages.record_warnings import warn
from pipeline.transitions import Failure, Lease, fenced

CHUNK_PAGES = 50
"""Pages that are read and written together; a crash repeats at most one such chunk."""

SIZE_BOUNDS = (50, 500)
"""Largest page count of a small and of a medium record. One chunk of discovery is 50 pages; a
record of 500 pages keeps thirty calls busy for minutes."""

_POOR, _DAMAGED = "poor", "damaged"
_WARNINGS = (
    (
        _POOR,
        ErrorCode.OCR_QUALITY_LOW,
        "These pages were read with low confidence; review them.",
    ),
    (_DAMAGED, ErrorCode.INPUT_INVALID, "These pages are damaged and could not be read."),
    (
        reader.HIDDEN_TEXT,
        ErrorCode.INPUT_INVALID,
        "These pages hold text that their image does not show; it was left out.",
    ),
    (
        reader.ADDRESSES_A_MODEL,
        ErrorCode.INPUT_INVALID,
        "These pages hold text that addresses a language model; it was read as data.",
    ),
    (
        reader.PARTLY_READ,
        ErrorCode.PARTLY_READ,
        "A part of these pages could not be read; look at the pages.",
    ),
    (
        reader.ATTACHMENTS,
        ErrorCode.PARTLY_READ,
        "The file holds other files, which were not read; upload each of them.",
    ),
    (
        reader.FURTHER_PICTURES,
        ErrorCode.PARTLY_READ,
        "The file holds further pictures, which were not read; upload each as a file of its own.",
    ),
    (
        reader.TRACKED_CHANGES,
        ErrorCode.INPUT_INVALID,
        "These pages hold changes that are not yet accepted; deleted words were left out.",
    ),
    (
        reader.ENCODING_GUESSED,
        ErrorCode.INPUT_INVALID,
        "The file does not say its encoding; letters with accents can be wrong.",
    ),
    (
        reader.LOST_CHARACTERS,
        ErrorCode.INPUT_INVALID,
        "The file was saved with lost or wrongly decoded letters; compare with the original.",
    ),
)
"""Doubt about a page → code and message of the record's warning, in the order of the warnings."""
_DOUBTFUL = {doubt for doubt, _, _ in _WARNINGS} - {_POOR, _DAMAGED}


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Copy the pages of a record with the same bytes, or read every page that is left."""
    if copy_pages(lease, size_class):
        return judged(lease)
    shell_file = ShellFile.objects.get(id=lease.shell_file_id)
    try:
        copying = partial(call_with_lease, lease, deadline)
        with storage.local_path(shell_file.storage_key, copying) as path:
            return _read(lease, deadline, shell_file, str(path))
    except reader.InputRefused as refused:
        return StepFailed(failure=Failure(code=ErrorCode(refused.code), message=refused.message))
    except FileNotFoundError:
        raise PipelineError(
            "the stored file of this record is gone", code=ErrorCode.INPUT_INVALID
        ) from None


def size_class(page_count: int) -> int:
    """Return 0, 1 or 2 for a small, medium or large record; small records are claimed first."""
    return sum(page_count > bound for bound in SIZE_BOUNDS)


def limits() -> reader.ReaderLimits:
    """Return the reader's limits with the settings of this installation applied."""
    return replace(
        reader.ReaderLimits(),
        max_bytes=settings.MAX_UPLOAD_MB * 1024 * 1024,
        max_pages=settings.MAX_PAGES,
    )


def _read(lease: Lease, deadline: StepDeadline, shell_file: ShellFile, path: str) -> StepResult:
    preemption = Preemption(lease)
    count: int | None = None
    first = shell_file.pages_read + 1
    while count is None or first <= count:
        last = first + CHUNK_PAGES - 1
        # The first child opens the file; only then is it known how many pages it reads.
        _restart(lease, deadline, deadline_s(1 if count is None else min(last, count) - first + 1))
        read = partial(reader.open_and_read, path, first, last, limits())
        with closing(with_lease(lease, deadline, read)) as found:
            opened = cast(reader.Probe, next(found))
            if count is None:
                count = opened.page_count
                _note_count(lease, shell_file, count)
                _restart(lease, deadline, deadline_s(min(last, count) - first + 1))
            chunk = cast("Iterator[reader.PageRead]", found)
            stopped = _read_chunk(
                lease,
                deadline,
                shell_file,
                chunk,
                min(last, count),
                lambda read: _stop(read, preemption, deadline),
            )
        if stopped is not None:
            return stopped
        first = last + 1
    return judged(lease)


def _note_count(lease: Lease, shell_file: ShellFile, count: int) -> None:
    if count == shell_file.page_count:
        return
    with fenced(lease):
        ShellFile.objects.filter(id=shell_file.id).update(page_count=count)
        Job.objects.filter(id=lease.job_id).update(size_class=size_class(count))


def _restart(lease: Lease, deadline: StepDeadline, seconds: float) -> None:
    deadline.restart(seconds)
    renew(lease, deadline)


def _read_chunk(
    lease: Lease,
    deadline: StepDeadline,
    shell_file: ShellFile,
    chunk: Iterator[reader.PageRead],
    last: int,
    stop_after: Callable[[int], StepResult | None],
) -> StepResult | None:
    """Read the pages up to `last` and write them together; return why pages are left, if any."""
    pages: list[Page] = []
    stopped: StepResult | None = None
    try:
        for page in chunk:
            pages.append(_row(shell_file, page))
            if page.number < last and (stopped := stop_after(page.number)):
                break
    finally:
        # Write the pages after an error as well, so that no page is read twice.
        if pages:
            with fenced(lease):
                Page.objects.bulk_create(pages)
                ShellFile.objects.filter(id=shell_file.id).update(pages_read=pages[-1].page_number)
            deadline.note_progress()
    return stopped


def _stop(pages_read: int, preemption: Preemption, deadline: StepDeadline) -> StepResult | None:
    if stop_requested():
        return StepInterrupted(reason=SIGTERM)
    if preemption.is_due():
        return StepInterrupted(reason=PREEMPTED)
    if deadline.is_soft_passed:
        return StepFailed(
            failure=Failure(
                code=ErrorCode.DEADLINE_EXCEEDED,
                message=f"the time for these pages was used up after page {pages_read};"
                " a retry continues from there",
            ),
            is_out_of_time=True,
        )
    return None


def deadline_s(page_count: int) -> float:
    """Return the time limit for a number of pages, in seconds of this process's clock.

    The larger of STEP_DEADLINE_MIN_S and the reader's own limit, which TIME_SCALE never shortens.
    Each chunk has its own deadline, because thousands of pages may take hours, but one page that
    hangs must not.
    """
    allowed = limits().seconds_to_open + page_count * limits().seconds_per_page
    return max(scaled(settings.STEP_DEADLINE_MIN_S), allowed)


def judged(lease: Lease) -> StepResult:
    """Return the end of the step for a record whose pages are all read, with its warnings."""
    pages = Page.objects.filter(shell_file_id=lease.shell_file_id).order_by("page_number")
    doubtful: defaultdict[str, list[int]] = defaultdict(list)
    readable = poor_scans = total = 0
    for number, source, confidence, found in pages.values_list(
        "page_number", "source", "ocr_confidence", "warnings"
    ):
        doubts = _doubts(source, confidence, found)
        for doubt in doubts:
            doubtful[doubt].append(number)
        total += 1
        readable += source in (PageSource.OCR, PageSource.MIXED, PageSource.TEXT_LAYER)
        poor_scans += source == PageSource.OCR and _POOR in doubts
    if total and len(doubtful[_DAMAGED]) == total:
        return StepFailed(
            failure=Failure(
                code=ErrorCode.INPUT_INVALID,
                message=f"none of the {total} pages can be read; send the file again",
            )
        )
    if poor_scans and poor_scans == readable:
        return StepFailed(
            failure=Failure(
                code=ErrorCode.OCR_QUALITY_LOW,
                message=f"mean word confidence is below {settings.OCR_MIN_CONFIDENCE}"
                f" on every page ({poor_scans})",
            )
        )

    def publish() -> None:
        for doubt, code, message in _WARNINGS:
            if doubtful[doubt]:
                warn(lease.shell_file_id, code, message, doubtful[doubt])
        if any(doubtful.values()):
            Session.objects.filter(id=lease.session_id).update(requires_human_review=True)
            Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
                manual_review_required=True
            )

    return StepCompleted(publish=publish)


def _doubts(source: str, confidence: float | None, warnings: Sequence[str]) -> set[str]:
    """Return the doubts about one page for which the record gets a warning."""
    found = _DOUBTFUL.intersection(warnings)
    if source == PageSource.DAMAGED:
        found.add(_DAMAGED)
    if confidence is not None and confidence < settings.OCR_MIN_CONFIDENCE:
        found.add(_POOR)
    return found


def _row(shell_file: ShellFile, page: reader.PageRead) -> Page:
    return Page(
        shell_file=shell_file,
        page_number=page.number,
        text=page.text,
        source=page.source,
        ocr_confidence=page.ocr_confidence,
        is_blank=page.is_blank,
        width=page.width,
        height=page.height,
        rotation=page.rotation,
        regions=[[each.kind, each.x0, each.y0, each.x1, each.y1] for each in page.regions],
        suspects=[[each.flag, each.start, each.end] for each in page.suspects],
        unread_share=page.unread_share,
        words=[
            [w.start, w.end, *(round(v, 5) for v in (w.x0, w.y0, w.x1, w.y1)), w.confidence]
            for w in page.words
        ]
        or None,
        warnings=list(page.warnings),
    )
