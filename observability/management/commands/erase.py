"""`manage.py erase RECORD… --reason CODE`: erase records, or all records of a patient, for good.

An erased record leaves a row of the audit, without PHI. Everything is repeatable: after a kill, the
same command does the rest.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from medproc.timing import scaled
from observability.actions.retention import ERASE, erased, exports_made
from observability.audit import log
from observability.audit.actor import command_line, operator
from observability.management.audited_command import one_line
from observability.management.owner import deleting_records
from observability.models import AuditEvent
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.labels import counted
from pipeline.core.states import JOB_TERMINAL
from pipeline.management.plain_command import PlainCommand
from pipeline.management.private_arguments import RefusedOption, patient_reference_of
from pipeline.models import Job
from pipeline.operations.operator_actions import job_cancel
from pipeline.operations.retention import patients
from pipeline.operations.retention.erase import (
    ErasureReason,
    check_erasable,
    erase_exports,
    erase_record,
)

STOPS_WITHIN_S = 180.0
"""Seconds for which `--cancel` waits for running steps to end."""
_POLL_S = 0.5


class Command(PlainCommand):
    """Erase records for good."""

    help = (
        "Erase records for good: files, pages, replies, results, reviews and reuse. A row of the"
        " audit stays, without personal data. --dry-run shows what would be erased."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the records, the patient, and the other options."""
        parser.add_argument(
            "records", nargs="*", type=_whole_id, metavar="RECORD", help="the whole id of a record"
        )
        parser.add_argument(
            "--patient-of",
            type=_whole_id,
            metavar="RECORD",
            help="all records of the patient of this record",
        )
        parser.add_argument(
            "--patient-file",
            metavar="FILE",
            help="all records of a patient: a file that holds your reference of the patient in one"
            " line, or - for standard input",
        )
        parser.add_argument(
            "--patient",
            action=RefusedOption,
            instead="Use --patient-of RECORD, or --patient-file FILE.",
        )
        parser.add_argument(
            "--expect",
            type=int,
            metavar="N",
            help="the number of records of the patient, from the dry run",
        )
        parser.add_argument(
            "--reason", choices=[each.value for each in ErasureReason], help="stored in the audit"
        )
        parser.add_argument(
            "--exports",
            action="append",
            type=Path,
            default=[],
            metavar="FOLDER",
            help="also delete the exports of the records in this folder; repeatable",
        )
        parser.add_argument("--cancel", action="store_true", help="cancel jobs that have not ended")
        parser.add_argument("--dry-run", action="store_true", help="only show what would happen")
        parser.add_argument("--json", action="store_true", help="print one JSON object per record")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError if a record cannot be erased; nothing is erased then."""
        if options["reason"] is None and not options["dry_run"]:
            raise CommandError("give a reason with --reason, or look with --dry-run", returncode=2)
        with one_line(), deleting_records():
            self._erase(options)

    def _erase(self, options: dict[str, Any]) -> None:
        records = self._records(options)
        waiting = [record for record in records if not _is_erased(record)]
        try:
            for folder in options["exports"]:
                _check_folder(folder)
            if options["dry_run"]:
                self._show(records, waiting, options)
                return
            if options["cancel"]:
                _cancel(waiting)
            check_erasable(waiting)
        except UserError as error:
            self._audit_refusal(waiting, error)
            raise
        for record in records:
            exports = sum(erase_exports([record], folder) for folder in options["exports"])
            self._erase_one(record, options, exports)

    def _erase_one(self, record: UUID, options: dict[str, Any], exports: int) -> None:
        row: dict[str, Any] = {"shell_file_id": str(record), "exports_deleted": exports}
        if _is_erased(record):
            row["status"] = "erased before"
        else:
            found = erase_record(
                record,
                audit=lambda found: erased(command_line(), options["reason"], record, found),
            )
            row |= {"status": "erased", **found.facts()}
        row["exports_made"] = exports_made(record)
        self._print(row, as_json=options["json"])

    def _records(self, options: dict[str, Any]) -> list[UUID]:
        """Return the named records, or those of the patient. Raises CommandError and UserError."""
        named, of = options["records"], options["patient_of"]
        ways = [bool(named), of is not None, options["patient_file"] is not None]
        if sum(ways) != 1:
            raise CommandError(
                "name records, or one patient with --patient-of or --patient-file", returncode=2
            )
        if named:
            return list(dict.fromkeys(named))
        found = (
            patients.records_beside(of)
            if of is not None
            else patients.records_of(patient_reference_of(options) or "")
        )
        self._say_similar(found, as_json=options["json"])
        if not options["dry_run"] and options["expect"] != len(found.records):
            raise UserError(
                f"the patient has {counted(len(found.records), 'record')}; look with --dry-run,"
                " then give this number with --expect",
                code=UserErrorCode.STATE_CONFLICT,
            )
        return list(found.records)

    def _say_similar(self, found: patients.PatientRecords, *, as_json: bool) -> None:
        if found.similar and not as_json:
            self.stderr.write(
                f"{counted(len(found.similar), 'other record')} may be of the same person, and"
                " stay; erase them by their ids if they are:"
            )
            for record in found.similar:
                self.stderr.write(f"  {record}")

    def _show(
        self, records: Sequence[UUID], waiting: Sequence[UUID], options: dict[str, Any]
    ) -> None:
        if not options["cancel"]:
            check_erasable(waiting)
        for record in records:
            status = "would be erased" if record in waiting else "erased before"
            row = {"shell_file_id": str(record), "status": status}
            self._print({**row, "exports_made": exports_made(record)}, as_json=options["json"])
        if not options["json"]:
            self.stdout.write(f"{counted(len(waiting), 'record')}. Nothing was changed (dry run).")

    def _print(self, row: dict[str, Any], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(row))
            return
        facts = {name: value for name, value in row.items() if isinstance(value, int) and value}
        # One export can have several files, and files can be copied: no difference is a fact.
        exports = facts.pop("exports_made", 0)
        if "exports_deleted" in facts:
            facts["files of exports"] = facts.pop("exports_deleted")
        counts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts.items())
        self.stdout.write(f"{row['shell_file_id']}: {row['status']}{': ' * bool(counts)}{counts}")
        if exports:
            self.stdout.write(
                f"  the audit knows {counted(exports, 'export')} of this record: delete every copy"
                " that is elsewhere"
            )

    def _audit_refusal(self, records: Sequence[UUID], error: UserError) -> None:
        for record in records:
            log.record_command(
                ERASE, target_kind="record", target_id=record, refusal=error, facts={}
            )


def _whole_id(text: str) -> UUID:
    """Parse the whole id of a record: a beginning could name another record tomorrow."""
    try:
        found = UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "not the whole id of a record; `explain` shows the id"
        ) from None
    return found


def _is_erased(record: UUID) -> bool:
    """Return whether a tombstone of the record exists."""
    events = AuditEvent.objects.filter(target_id=str(record), action=ERASE)
    return events.filter(result=log.AuditResult.DONE).exists()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError("--exports: there is no such folder", code=UserErrorCode.OUTPUT_INVALID)


def _cancel(records: Sequence[UUID]) -> None:
    """Cancel the jobs that have not ended, and wait for their running steps."""
    jobs = Job.objects.filter(shell_file_id__in=records).exclude(status__in=JOB_TERMINAL)
    for job in jobs:
        # A job that has ended meanwhile is no obstacle.
        with suppress(UserError):
            job_cancel(job.id, reason="the record is erased", by=operator())
    until = time.monotonic() + scaled(STOPS_WITHIN_S)
    while jobs.all().exists() and time.monotonic() < until:
        time.sleep(scaled(_POLL_S))
