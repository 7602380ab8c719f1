"""The output of `process`: lines for logs, a live table for terminals, and the results.

File names are those that the person typed. They are shown without characters that a terminal
could misread, and they are never logged.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.labels import (
    COLOURS,
    PASS_TITLES,
    SHAPES,
    WORDS,
    StatusWord,
    counted,
    duration,
    incomplete_note,
    pages,
    plural,
)
from pipeline.core.server_faults import ServerFault
from pipeline.core.states import JobStatus, Step
from pipeline.models import RecordBatch
from pipeline.models.selectors import Progress
from pipeline.models.work_tables import WORK_TABLES

REMIND_S = 10.0
"""Seconds after which a line is written even if neither pass nor status has changed."""
_ORDER = {
    word: at
    for at, word in enumerate(
        (
            StatusWord.RUNNING,
            StatusWord.FAILED,
            StatusWord.DEAD,
            StatusWord.PARKED,
            StatusWord.CANCELLED,
            StatusWord.WAITING,
            StatusWord.DONE,
            StatusWord.SKIPPED,
        )
    )
}


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """The result of one file, for the table and for `--json`."""

    name: str
    shell_file_id: UUID | None = None
    progress: Progress | None = None
    error_code: ErrorCode | ServerFault | None = None
    """The code of the refusal, if nothing was submitted."""
    refusal: str = ""
    """The refusal in words."""
    to_review: int = 0
    """The number of entities with a review flag."""
    batch_id: UUID | None = None
    """The batch that the file was submitted with; None for a single file."""
    reused_from: UUID | None = None
    """The record whose results the record reused; None if it reused none."""

    @property
    def status(self) -> str:
        """The status in `--json`: completed, failed, parked, cancelled or running."""
        if self.shell_file_id is None:
            return JobStatus.FAILED.value
        if self.progress is None:
            return "running"
        match self.progress.status:
            case JobStatus.DEAD:
                return JobStatus.FAILED.value
            case JobStatus.PENDING | JobStatus.PROCESSING:
                return "running"
            case status:
                return status.value

    @property
    def word(self) -> StatusWord:
        """The status in the table."""
        if self.progress is not None:
            return WORDS[self.progress.status]
        return StatusWord.FAILED if self.shell_file_id is None else StatusWord.WAITING

    @property
    def code(self) -> str | None:
        """The error code of the record's failure or refusal."""
        return self.progress.error_code if self.progress else self.error_code

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints; `warnings` are those of the table."""
        return {
            "shell_file_id": str(self.shell_file_id) if self.shell_file_id else None,
            "status": self.status,
            "encounters": self.progress.encounters if self.progress else 0,
            "entities": self.progress.entities if self.progress else 0,
            "rows_not_understood": self.progress.rows_not_understood if self.progress else 0,
            "incomplete": bool(self.progress and self.progress.encounters_missing),
            "entities_to_review": self.to_review,
            "warnings": list(self.progress.warnings) if self.progress else [],
            "error_code": self.code,
            "batch_id": str(self.batch_id) if self.batch_id else None,
            "reused_from": str(self.reused_from) if self.reused_from else None,
        }


def doing(progress: Progress) -> str:
    """Return the state of a record in words: `Pass 1: 18/42 batches, 4 encounters`."""
    word = WORDS[progress.status]
    title = PASS_TITLES[progress.step]
    match progress.status:
        case JobStatus.COMPLETED:
            found = f"{counted(progress.encounters, 'encounter')}"
            return f"{found}, {counted(progress.entities, 'entity')}"
        case JobStatus.PENDING:
            return f"waits for {title}"
        case JobStatus.PARKED:
            return f"{word} before {title}: {progress.park_reason}"
        case JobStatus.PROCESSING:
            return f"{title}: {_counts(progress)}" if _counts(progress) else title
        case _:
            ended = f"{title}: {progress.error_code}" if progress.error_code else title
            return f"{ended}; record incomplete" if progress.encounters_missing else ended


def _counts(progress: Progress) -> str:
    match progress.step:
        case Step.PAGES:
            count = "" if progress.page_count is None else f"/{progress.page_count}"
            return f"{progress.pages_read}{count} pages read" if count else "reading"
        case step if step in progress.work:
            done, total = progress.work[step]
            return f"{done}/{total} {plural(WORK_TABLES[step].noun)}{_found(progress)}"
        case _:
            return ""


def _found(progress: Progress) -> str:
    """Return what a pass has found so far, where its results become visible one by one."""
    if progress.step is Step.PASS05:
        return " searched"
    return f", {counted(progress.entities, 'entity')}" if progress.step is Step.PASS1 else ""


def _chip(progress: Progress) -> str:
    word = WORDS[progress.status]
    return f"{SHAPES[word]} {word}"


@dataclass
class Lines:
    """One line for each change of a record, for logs, pipes and scripts."""

    write: Callable[[str], object]
    names: Mapping[UUID, str]
    _began: float = field(default_factory=time.monotonic)
    _shown: dict[UUID, tuple[Step, JobStatus]] = field(default_factory=dict)
    _written: dict[UUID, tuple[float, str]] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def update(self, progress_by_record: Mapping[UUID, Progress]) -> None:
        """Write a line for each record that has changed, or that has been silent for a while."""
        now = time.monotonic()
        for shell_file_id in self.names:
            progress = progress_by_record[shell_file_id]
            place = (progress.step, progress.status)
            words = f"{_chip(progress)}  {doing(progress)}"
            wrote_at, last = self._written.get(shell_file_id, (0.0, ""))
            changed = self._shown.get(shell_file_id) != place
            if changed or (words != last and now - wrote_at >= REMIND_S):
                self._shown[shell_file_id] = place
                self._written[shell_file_id] = (now, words)
                self.write(f"{now - self._began:6.1f} s  {self.names[shell_file_id]}  {words}")

    def say(self, line: str) -> None:
        """Write a line, unless it was written before."""
        if line not in self._said:
            self._said.add(line)
            self.write(line)


class Screen:
    """A table that is redrawn in place, with the active records on top."""

    def __init__(self, console: Console, names: Mapping[UUID, str]) -> None:
        self._names = names
        self._console = console
        self._began = time.monotonic()
        self._note = ""
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def update(self, progress_by_record: Mapping[UUID, Progress]) -> None:
        """Draw the table."""
        self._live.update(self._table(progress_by_record), refresh=True)

    def say(self, line: str) -> None:
        """Show a line under the table; it replaces the previous line."""
        self._note = line

    def _table(self, progress_by_record: Mapping[UUID, Progress]) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False, expand=False)
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=40)
        table.add_column(no_wrap=True, min_width=11)
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_column(no_wrap=True, justify="right")
        rows = sorted(progress_by_record.values(), key=lambda p: _ORDER[WORDS[p.status]])
        room = max(3, self._console.size.height - 4)
        for progress in rows[:room]:
            word = WORDS[progress.status]
            table.add_row(
                Text(self._names[progress.shell_file_id]),
                Text(_chip(progress), style=COLOURS[word]),
                Text(doing(progress)),
                Text(_took(progress, time.monotonic() - self._began), style="dim"),
            )
        done = sum(p.is_terminal for p in rows)
        more = f", {len(rows) - room} not shown" if len(rows) > room else ""
        table.caption = Text(f"{done} of {len(rows)} ended{more}", style="dim")
        if self._note:
            table.caption.append(f"\n{self._note}", style="yellow")
        table.caption_justify = "left"
        return table


def _took(progress: Progress, watched_s: float) -> str:
    if progress.started_at is None:
        return ""
    if progress.completed_at is None:
        return duration(watched_s)
    return duration((progress.completed_at - progress.started_at).total_seconds())


def results(file_results: Sequence[FileResult]) -> list[Text]:
    """Return the table of results; warnings and advice follow the record that needs them."""
    head = ("file", "pages", "encounters", "entities", "not understood", "warnings", "status")
    cells = [_cells(result) for result in file_results]
    widths = [max(len(row[at]) for row in (head, *cells)) for at in range(len(head))]
    lines = [_row(head, widths, style="bold")]
    for result, row in zip(file_results, cells, strict=True):
        lines.append(_row(row, widths, last=COLOURS[result.word]))
        lines += [Text(f"    {line}", style="dim") for line in _remarks(result)]
    return lines


def totals(batch: RecordBatch) -> Text:
    """Return the line of a batch: how its records ended, and what was found in all of them."""
    if batch.completed_at is None:
        ended = f"{counted(batch.records_total, 'record')} submitted"
    else:
        ways = (
            (batch.records_completed, StatusWord.DONE),
            (batch.records_failed, StatusWord.FAILED),
            (batch.records_cancelled, StatusWord.CANCELLED),
        )
        by_word = ", ".join(f"{count} {word}" for count, word in ways if count)
        took = duration((batch.completed_at - batch.created_at).total_seconds())
        ended = (
            f"{counted(batch.records_total, 'record')}: {by_word};"
            f" {counted(batch.pages_total, 'page')},"
            f" {counted(batch.encounters_total, 'encounter')},"
            f" {counted(batch.entities_total, 'entity')} in {took}"
        )
    return Text(f"batch {batch.id}  {ended}", style="bold")


def print_lines(stream: OutputWrapper, lines: Sequence[Text | str]) -> None:
    """Write lines, in colour if the stream is a terminal."""
    console = Console(file=sys.stdout, soft_wrap=True, highlight=False)
    for line in lines:
        if stream.isatty():
            with console.capture() as captured:
                console.print(line, end="", markup=False)
            stream.write(captured.get())
        else:
            stream.write(str(line))


def _cells(result: FileResult) -> tuple[str, ...]:
    p = result.progress
    warnings = len(p.warnings) + (result.to_review > 0) if p else 0
    status = f"{SHAPES[result.word]} {result.word}"
    return (
        result.name,
        str(p.page_count or p.pages_read) if p else "",
        f"{p.encounters:,}" if p else "",
        f"{p.entities:,}" if p else "",
        f"{p.rows_not_understood:,}" if p and p.rows_not_understood else "",
        str(warnings) if warnings else "",
        f"{status} {result.code}" if result.code else status,
    )


def _row(cells: Sequence[str], widths: Sequence[int], *, style: str = "", last: str = "") -> Text:
    left = {0, len(cells) - 1}
    padded = [
        cell.ljust(width) if at in left else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    line = Text("  ".join(padded[:-1]) + "  ", style=style)
    line.append(padded[-1].rstrip(), style=last or style)
    return line


def _unread(p: Progress | None) -> str:
    if p is None or not p.rows_not_understood:
        return ""
    return f", of which {counted(p.rows_not_understood, 'row')} not understood"


def _remarks(result: FileResult) -> list[str]:
    found = []
    p = result.progress
    if result.reused_from:
        found.append(f"↺ Reused from record {result.reused_from}; --force extracts again.")
    if p and p.encounters_missing:
        found.append(f"! {incomplete_note(p.encounters - p.encounters_missing, p.encounters)}")
    for warning in p.warnings if p else ():
        where = f"{pages(warning['pages'])}: " if warning.get("pages") else ""
        times = f" ({warning['code']} ×{warning['count']:,})" if warning.get("count") else ""
        found.append(f"! {where}{warning['message'].removesuffix('.' if times else '')}{times}")
    if result.to_review:
        found.append(f"! {counted(result.to_review, 'entity')} to review{_unread(p)}.")
    if result.refusal:
        found.append(f"→ {result.refusal}")
    code = (p.underlying_error or p.error_code) if p else None
    if code:
        found.append(f"→ {ERRORS[ErrorCode(code)].advice}")
    if result.word is StatusWord.PARKED and p:
        until = f" until {p.parked_until:%Y-%m-%d %H:%M} UTC" if p.parked_until else ""
        found.append(f"→ Parked{until}: {p.park_reason}")
    if result.shell_file_id and result.word is not StatusWord.DONE:
        found.append(f"→ manage.py explain {result.shell_file_id}")
    return found
