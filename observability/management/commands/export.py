"""`manage.py export ID --format FORMAT`: the results of a record as files. The files are PHI.

Each export is audited before its file becomes visible. A refusal is one line and exit code 1.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from observability.audit import log
from observability.audit.actor import command_line
from observability.drilldown.lookup import SHORTEST
from observability.management.id_arguments import record_of
from pipeline.core.errors import PipelineError, UserError
from pipeline.exports.export import Exported, export_record
from pipeline.exports.formats import Format
from pipeline.management.plain_command import PlainCommand


def _place(text: str) -> Path:
    """Return the place of `--output`; an empty text, such as an unset variable, is no place."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; name a folder or a file")
    if text.endswith("/") and not Path(text).is_dir():
        # pathlib drops the slash: the export would become a file with the name of the folder.
        raise argparse.ArgumentTypeError("names a folder that does not exist; make it first")
    return Path(text)


class Command(PlainCommand):
    """Export the results of a record."""

    help = (
        "Export the results of a record as files. The files contain clinical data of a patient, and"
        " each export is audited."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the id and the options."""
        parser.add_argument(
            "id",
            metavar="ID",
            help=f"an id of the record, or its first {SHORTEST} or more hexadecimal digits",
        )
        parser.add_argument(
            "--format",
            required=True,
            choices=[form.value for form in Format],
            help="pair: Parquet and JSON; fhir: a FHIR R4 document; html: the marked text; csv",
        )
        parser.add_argument(
            "--output",
            type=_place,
            metavar="PATH",
            help="a folder, or the file to write (default: the present folder)",
        )
        parser.add_argument(
            "--allow-incomplete",
            action="store_true",
            help="export a record with missing results; the export says that it is incomplete",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError with the code of the refusal if there is no export."""
        record_id = record_of(options["id"])

        def audit(exported: Exported) -> None:
            log.record(
                command_line(),
                log.EXPORT,
                target_kind="record",
                target_id=record_id,
                facts=exported.facts(),
            )

        try:
            exported, path = export_record(
                record_id,
                Format(options["format"]),
                output=options["output"],
                allow_incomplete=options["allow_incomplete"],
                audit=audit,
            )
        except (UserError, PipelineError) as error:
            log.record_command(
                log.EXPORT,
                target_kind="record",
                target_id=record_id,
                refusal=error,
                facts={"format": options["format"]},
            )
            raise CommandError(f"{error.message} ({error.code})") from None
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(exported), "path": str(path)}))
            return
        self.stdout.write(f"{path} ({exported.size_bytes:,} bytes)")
        for notice in exported.notices:
            self.stdout.write(f"  {notice}")
