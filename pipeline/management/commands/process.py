"""`manage.py process FILE…`: submit records and follow them to their end.

A file that cannot be submitted is reported in one line and does not stop the other files. The
command exits with 0 only if every record completed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from django.db import DatabaseError, InterfaceError, transaction
from rich.console import Console

from medproc.printable import in_one_line
from pipeline.core.db_errors import unless_away
from pipeline.core.errors import ErrorCode, PipelineError
from pipeline.core.server_faults import ServerFault, fault_of, line_of
from pipeline.management import private_arguments
from pipeline.management.audit import record_command
from pipeline.management.plain_command import PlainCommand
from pipeline.management.progress import FollowingEndedError, View, follow
from pipeline.management.result_table import (
    FileResult,
    Lines,
    Screen,
    print_lines,
    results,
    totals,
)
from pipeline.models import selectors
from pipeline.models.selectors import Progress
from pipeline.operations.operator_actions import (
    record_batch_close,
    record_batch_open,
    record_create,
)
from pipeline.stages.intake import COMMAND_LINE, Received, Submission, stored_submission

BATCH = "batch of records"
"""The audit's name for a batch as a target."""
INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class Command(PlainCommand):
    """Submit files and follow them."""

    help = (
        "Submit records (PDF, images, text, RTF, DOCX, C-CDA) and follow them until each has ended."
        " Exits with 0 only if every record completed; with --no-wait, if every file was submitted."
    )

    _refusing: ServerFault | None = None
    """The server that refused a file; the following files are not tried."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        private_arguments.add_file_arguments(parser)
        parser.add_argument(
            "--priority",
            type=_priority,
            default=0,
            metavar="N",
            help="-100 to 100; higher goes first (default 0)",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="extract again; without it, a file that you submitted before reuses its results",
        )
        parser.add_argument(
            "--no-wait",
            action="store_true",
            help="submit and exit; the records are processed in the background",
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object per line, in the order of the files",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit with 1 if a file was refused or a record did not complete, with 130 after Ctrl-C."""
        _write_anything(sys.stdout, sys.stderr)
        files = private_arguments.files_of(options)
        patient = private_arguments.patient_reference_of(options)
        batch_id = _opened_batch() if len(files) > 1 else None
        stated = Submission(
            path=Path(),
            patient_reference=patient,
            priority=options["priority"],
            record_batch_id=batch_id,
            owner=COMMAND_LINE,
            is_forced=options["force"],
        )
        found = [self._submit(path, stated) for path in files]
        if batch_id is not None:
            with unless_away():
                _close_batch(batch_id, sum(result.shell_file_id is not None for result in found))
        names = {r.shell_file_id: r.name for r in found if r.shell_file_id}
        if options["no_wait"]:
            self._show(found, as_json=options["json"])
            sys.exit(0 if len(names) == len(found) else 1)
        try:
            progress = self._follow(names, quiet=options["json"]) if names else {}
        except KeyboardInterrupt:
            self._leave(names)
            sys.exit(INTERRUPTED)
        except FollowingEndedError as error:
            self.stderr.write(str(error))
            self._leave(names)
            if options["json"]:
                self._show(found, as_json=True)
            sys.exit(1)
        found = _with_progress(found, progress)
        self._show(found, as_json=options["json"])
        sys.exit(0 if all(result.status == "completed" for result in found) else 1)

    def _leave(self, names: Mapping[UUID, str]) -> None:
        self.stderr.write("Stopped waiting; the records are processed in the background.")
        for shell_file_id in names:
            self.stderr.write(f"  manage.py explain {shell_file_id}")

    def _submit(self, path: Path, stated: Submission) -> FileResult:
        # A name on disk need not be UTF-8, but the database and the terminal require UTF-8.
        filename = os.fsencode(path.name).decode("utf-8", "replace")
        name = in_one_line(filename) or in_one_line(str(path))
        if self._refusing is not None:
            # Each of a thousand files would wait for the same server.
            return FileResult(name=name, error_code=self._refusing, refusal=line_of(self._refusing))
        try:
            received = _submitted(replace(stated, path=_regular(path), filename=filename))
        except PipelineError as error:
            with unless_away():
                record_command("submit", target_kind="record", refusal=error)
            self.stderr.write(f"{name}: {error.message} ({error.code})")
            self._refusing = fault_of(error)
            return FileResult(name=name, error_code=error.code, refusal=error.message)
        except (DatabaseError, InterfaceError) as error:
            fault = fault_of(error)
            if fault is None:
                raise
            self.stderr.write(f"{name}: {line_of(fault)}")
            self._refusing = fault
            return FileResult(name=name, error_code=fault, refusal=line_of(fault))
        except OSError as error:
            refusal = error.strerror or "The file cannot be read"
            self.stderr.write(f"{name}: {refusal}")
            return FileResult(name=name, error_code=ErrorCode.INPUT_INVALID, refusal=refusal)
        return FileResult(
            name=name, shell_file_id=received.shell_file_id, batch_id=stated.record_batch_id
        )

    def _follow(self, names: Mapping[UUID, str], *, quiet: bool) -> dict[UUID, Progress]:
        if (self.stderr if quiet else self.stdout).isatty():
            with Screen(Console(file=sys.stderr if quiet else sys.stdout), names) as screen:
                return follow(names, screen)
        view: View = _Silent(self.stderr.write) if quiet else Lines(self.stdout.write, names)
        return follow(names, view)

    def _show(self, file_results: Sequence[FileResult], *, as_json: bool) -> None:
        if as_json:
            for result in file_results:
                self.stdout.write(json.dumps(result.as_json()))
            return
        print_lines(self.stdout, ["", *results(file_results)])
        batch_id = next((result.batch_id for result in file_results if result.batch_id), None)
        if batch_id is not None:
            print_lines(self.stdout, ["", totals(selectors.record_batch(batch_id))])


def _submitted(submission: Submission) -> Received:
    """Submit a record and audit the submission, in one transaction."""
    facts = {
        "size_bytes": submission.path.stat().st_size,
        "priority": submission.priority,
        "batch": str(submission.record_batch_id) if submission.record_batch_id else None,
        "force": submission.is_forced,
    }
    with stored_submission(submission) as stored, transaction.atomic():
        received = record_create(stored)
        target = received.shell_file_id
        record_command("submit", target_kind="record", target_id=target, facts=facts)
    return received


def _opened_batch() -> UUID:
    with transaction.atomic():
        batch_id = record_batch_open()
        record_command("open_batch", target_kind=BATCH, target_id=batch_id)
    return batch_id


def _close_batch(batch_id: UUID, records: int) -> None:
    with transaction.atomic():
        record_batch_close(batch_id, records)
        facts = {"records": records}
        record_command("close_batch", target_kind=BATCH, target_id=batch_id, facts=facts)


class _Silent(Lines):
    """Shows only messages about no single record: with `--json`, programs read the output."""

    def __init__(self, write: Any) -> None:
        super().__init__(write, {})

    def update(self, progress_by_record: Mapping[UUID, Progress]) -> None:
        """Show nothing."""


def _regular(path: Path) -> Path:
    # Reading a pipe or a device could wait without end.
    if path.is_dir():
        raise IsADirectoryError(None, "This is a folder; name the files in it")
    if path.exists() and not path.is_file():
        raise OSError(None, "This is not a regular file")
    return path


def _with_progress(
    file_results: Sequence[FileResult], progress: Mapping[UUID, Progress]
) -> list[FileResult]:
    to_review = selectors.entities_to_review(progress)
    reused = selectors.reused_from(progress)
    return [
        replace(
            result,
            progress=progress[result.shell_file_id],
            to_review=to_review.get(result.shell_file_id, 0),
            reused_from=reused.get(result.shell_file_id),
        )
        if result.shell_file_id
        else result
        for result in file_results
    ]


def _priority(text: str) -> int:
    number = int(text)
    if not -100 <= number <= 100:
        raise argparse.ArgumentTypeError("a priority is from -100 to 100")
    return number


def _write_anything(*streams: TextIO) -> None:
    # A terminal that is not UTF-8 then shows other characters as escapes instead of failing.
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
