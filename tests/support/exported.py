"""Sample records with the results of every pass, and their exports. Needs `module_db`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from django.core.management import call_command
from django.test import override_settings

from pipeline.exports.export import Exported, export_record
from pipeline.exports.formats import TEXT_FORMATS, Format
from pipeline.exports.snapshot import Snapshot, snapshot
from tests.support import records

CODE_SYSTEMS = ("ICD10CM", "LOINC")


def load_codes() -> None:
    """Load the packaged code systems, so that entities get codes."""
    for system in CODE_SYSTEMS:
        call_command("load_codes", system, verbosity=0)


def completed(path: Path) -> UUID:
    """Run a sample through every pass; return the id of the record."""
    with override_settings(SKIPPED_PASSES=()):
        record_id: UUID = records.completed_record(path).id
    return record_id


def exported(record_id: UUID, form: Format, folder: Path, **options: Any) -> Path:
    """Export a record without an audit; return the path of the file."""
    return export_record(record_id, form, output=folder, audit=_unheard, **options)[1]


@contextmanager
def opened(record_id: UUID, **options: Any) -> Iterator[Snapshot]:
    """Open a snapshot of a record."""
    with snapshot(record_id, uuid4(), **options) as source:
        yield source


def bundle_of(record_id: UUID, **options: Any) -> dict[str, Any]:
    """Return the FHIR bundle of a record; numbers are decimals with their digits."""
    with opened(record_id, **options) as source:
        return parsed("".join(TEXT_FORMATS[Format.FHIR].pieces(source)))


def parsed(text: str) -> dict[str, Any]:
    """Return a JSON object with its numbers as decimals."""
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


def plain(of: Any) -> Any:
    """Return the same values with floats for decimals, as a plain JSON reader makes them."""
    if isinstance(of, dict):
        return {key: plain(value) for key, value in of.items()}
    if isinstance(of, list):
        return [plain(each) for each in of]
    return float(of) if isinstance(of, Decimal) else of


def _unheard(exported: Exported) -> None:
    """Take the place of the audit."""
