"""The formats by name: the file each makes, and the function that writes its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pipeline.exports.csv_table import csv_table
from pipeline.exports.fhir.bundle import bundle
from pipeline.exports.html_page import html_page
from pipeline.exports.source import RecordSource


class Format(StrEnum):
    """The formats of `manage.py export`."""

    PAIR = "pair"
    """Parquet and JSON of one generation."""
    FHIR = "fhir"
    """A FHIR R4 document Bundle."""
    HTML = "html"
    """The text of the pages with the entities marked."""
    CSV = "csv"
    """One row for each entity."""


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """A format of one text file."""

    suffix: str
    media_type: str
    pieces: Callable[[RecordSource], Iterator[str]]


TEXT_FORMATS: dict[Format, TextFormat] = {
    Format.FHIR: TextFormat(suffix=".fhir.json", media_type="application/fhir+json", pieces=bundle),
    Format.HTML: TextFormat(
        suffix=".html", media_type="text/html; charset=utf-8", pieces=html_page
    ),
    Format.CSV: TextFormat(suffix=".csv", media_type="text/csv; charset=utf-8", pieces=csv_table),
}
"""Every format but the pair."""
