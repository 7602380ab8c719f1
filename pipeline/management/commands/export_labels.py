"""`manage.py export_labels FOLDER`: closed reviews as labelled data for `manage.py evaluate`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from pipeline.core.errors import UserError
from pipeline.core.labels import counted
from pipeline.management.audit import record_command
from pipeline.management.plain_command import PlainCommand
from pipeline.operations.review.labels import export_labels

TARGET = "labels"
"""The audit's name for labelled data as a target."""


class Command(PlainCommand):
    """Export what people decided as labelled data."""

    help = (
        "Write the truth of every closed review into a new folder, for manage.py evaluate."
        " The files hold the text of the records (PHI)."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the folder."""
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new or empty folder")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError with the code of the refusal if the folder cannot be used."""
        try:
            with transaction.atomic():
                exported = export_labels(options["folder"])
                record_command("export_labels", target_kind=TARGET, facts=asdict(exported))
        except UserError as error:
            record_command("export_labels", target_kind=TARGET, refusal=error)
            raise CommandError(f"{error.message} ({error.code})") from None
        if options["json"]:
            self.stdout.write(json.dumps(asdict(exported)))
            return
        left_out = f", {exported.left_out} over two pages left out" if exported.left_out else ""
        self.stdout.write(
            f"{counted(exported.records, 'record')}, {counted(exported.entities, 'entity')}"
            f" written{left_out}"
        )
