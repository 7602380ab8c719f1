"""`manage.py load_codes SYSTEM [FILE]`: load one code system, in place of its old codes.

A load that is refused, interrupted or killed changes nothing.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction

from pipeline.codes import loaders
from pipeline.codes.loaders import CodesError, Loaded
from pipeline.core.labels import counted
from pipeline.management.audit import record_command
from pipeline.management.plain_command import PlainCommand
from pipeline.models.codes import SystemKey

TARGET = "code system"
"""The audit's name for a code system as a target."""
_USES = {
    SystemKey.ICD10CM: "conditions and symptoms",
    SystemKey.UNII: "drugs and allergens",
    SystemKey.LOINC: "laboratory tests and vital signs",
    SystemKey.RXNORM: "drugs and allergens",
    SystemKey.SNOMEDCT: "conditions, symptoms, allergens and procedures",
    SystemKey.CVX: "vaccines",
}
"""What Pass 1.5 codes with each system."""


class Command(PlainCommand):
    """Load a code system."""

    help = (
        "Load one code system and replace its old codes, in one transaction. ICD10CM, UNII and"
        " LOINC come from installed packages; RXNORM, SNOMEDCT, CVX and the full LOINC come from"
        " your own files."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "system",
            metavar="SYSTEM",
            help=", ".join(f"{key.value} ({_USES[key]})" for key in SystemKey),
        )
        parser.add_argument(
            "file",
            metavar="FILE",
            nargs="?",
            type=Path,
            help="your own copy: Loinc.csv, UNII_Names.txt or cvx.txt, or the folder or zip archive"
            " of a release of RxNorm (RRF) or SNOMED CT (RF2)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raise CommandError with the code of the refusal if the source cannot be loaded."""
        system = options["system"].upper()
        try:
            with transaction.atomic():
                loaded = loaders.load(system, options["file"])
                facts = {name: value for name, value in asdict(loaded).items() if name != "system"}
                record_command("load_codes", target_kind=TARGET, target_id=system, facts=facts)
        except CodesError as error:
            known = system if system in SystemKey.values else ""
            record_command("load_codes", target_kind=TARGET, target_id=known, refusal=error)
            raise CommandError(f"{error.message} ({error.code})") from None
        self.stdout.write(json.dumps(asdict(loaded)) if options["json"] else _line(loaded))


def _line(loaded: Loaded) -> str:
    counts = f"{counted(loaded.codes, 'code')}, {counted(loaded.terms, 'term')}"
    done = "loaded" if loaded.is_changed else "unchanged"
    label = SystemKey(loaded.system).label
    return f"{label} {loaded.version}: {counts} {done}, from {loaded.source} ({loaded.licence})"
