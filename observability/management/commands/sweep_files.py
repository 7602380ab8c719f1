"""`manage.py sweep_files`: delete stored files that no record names; report records without a file.

The output holds random names and ids, and no personal data.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from medproc.timing import scaled
from observability.audit.actor import command_line
from observability.management.audited_command import one_line
from observability.management.commands.reset_stale_batches import seconds
from observability.uploads.stored_files import sweep_audited
from pipeline.core.labels import counted
from pipeline.management.plain_command import PlainCommand
from pipeline.operations import stored_files
from pipeline.operations.reasons import stated_if_given
from pipeline.operations.stored_files import Survey

SHOWN = 20
"""Names that the text output lists of each kind."""


class Command(PlainCommand):
    """Sweep the stored files once."""

    help = "Delete stored files that no record names and that are older than a safe age."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare age, dry run and the other options."""
        parser.add_argument(
            "--older-than",
            type=seconds,
            default=scaled(stored_files.SAFE_AGE_S),
            metavar="AGE",
            help="only files whose last write is older: 90s, 10m, 24h (default 24h)",
        )
        parser.add_argument("--dry-run", action="store_true", help="only show what would happen")
        parser.add_argument(
            "--after-restore",
            action="store_true",
            help="delete although the database is older than the files, or is another database",
        )
        parser.add_argument("--reason", default="", help="stored in the audit, not in the log")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit with 1 if the sweep is held, or if the file of a record is missing."""
        with one_line():
            reason = stated_if_given(options["reason"]) or ""
        held = deleted = None
        if options["dry_run"]:
            found = stored_files.survey(options["older_than"])
            held = None if options["after_restore"] else found.held
        else:
            found, row = sweep_audited(
                command_line(),
                options["older_than"],
                after_restore=options["after_restore"],
                reason=reason,
            )
            held, deleted = row.held, row.deleted_files
        if options["json"]:
            self.stdout.write(json.dumps(_object(found, held, deleted)))
        else:
            for line in _lines(found, held, deleted):
                self.stdout.write(line)
        if held or found.missing:
            raise SystemExit(1)


def _object(found: Survey, held: str | None, deleted: int | None) -> dict[str, Any]:
    return {
        "files": found.files,
        "orphans": [vars(file) for file in found.orphans],
        "young": [vars(file) for file in found.young],
        "missing": [str(record_id) for record_id in found.missing],
        "deleted": deleted,
        "held": held,
    }


def _lines(found: Survey, held: str | None, deleted: int | None) -> list[str]:
    lines = [f"The sweep is held and deletes nothing: {held}"] if held else []
    orphans, young = counted(len(found.orphans), "orphan"), counted(len(found.young), "young file")
    lines.append(f"{counted(found.files, 'stored file')}; without a record: {orphans} and {young}")
    if deleted is None:
        lines.append("dry run: nothing was deleted")
    elif not held:
        lines.append(f"deleted {counted(deleted, 'stored file')}")
    for file in found.orphans[:SHOWN]:
        lines.append(f"  orphan  {file.key}  {file.size_bytes} bytes, {file.age_s / 3600:.1f} h")
    for file in found.young[:SHOWN]:
        lines.append(f"  young   {file.key}  {file.size_bytes} bytes, {file.age_s / 3600:.1f} h")
    if found.missing:
        lines.append(f"{counted(len(found.missing), 'record')} without a file:")
    lines += [f"  manage.py explain {record_id}" for record_id in found.missing[:SHOWN]]
    return lines
