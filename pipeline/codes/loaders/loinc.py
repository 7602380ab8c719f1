"""LOINC: common analytes and vital signs from packaged data, or the full `Loinc.csv`.

Every code is checked against its check digit.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.codes.loaders import packages
from pipeline.codes.loaders.check_digits import is_loinc
from pipeline.codes.loaders.files import TextFile, UserFiles, digest_of, sha256_of
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import CodeRow, Row, TermRow
from pipeline.models.codes import SystemKey

DISTRIBUTION = "labunits"
VITAL_SIGNS = Path(__file__).parent / "data" / "vital_signs.txt"
_FHIR = "FHIR R4 vital signs"
_ANALYTE = {
    "loinc_num": str,
    "name": str,
    "specimen": list,
    "traditional_units": str,
    "conversion_factor": float,
    "si_units": str,
}
_NEEDED = (
    "LOINC_NUM", "COMPONENT", "PROPERTY", "SYSTEM", "SCALE_TYP", "CLASS", "STATUS", "SHORTNAME",
    "LONG_COMMON_NAME", "VersionLastChanged",
)  # fmt: skip
_TERMS = {"SHORTNAME": "short", "CONSUMER_NAME": "consumer", "COMPONENT": "component"}
_PROPERTIES = {
    "COMPONENT": "component",
    "PROPERTY": "property",
    "TIME_ASPCT": "time",
    "SYSTEM": "specimen",
    "SCALE_TYP": "scale",
    "METHOD_TYP": "method",
    "STATUS": "status",
    "EXAMPLE_UCUM_UNITS": "example_ucum_units",
}
_STATUSES = frozenset({"ACTIVE", "TRIAL", "DISCOURAGED", "DEPRECATED"})


@dataclass(frozen=True)
class PackagedLoinc:
    """Common analytes from labunits, and the vital signs of FHIR R4."""

    key = SystemKey.LOINC
    licence = "LOINC licence (free with notice); labunits: MIT; FHIR: CC0"
    revision = 1
    has_second_displays = False

    @property
    def name(self) -> str:
        """The package with its version, and the second source."""
        return f"{packages.name_with_version(DISTRIBUTION)} and {_FHIR}"

    @cached_property
    def _analytes(self) -> Path:
        folder = packages.data_folder(
            "labunits", "pip install --require-hashes -r requirements.lock"
        )
        return packages.only_file(folder, "analytes.json")

    def version(self) -> str:
        """Return the version of the package: the package states no release of LOINC."""
        return packages.name_with_version(DISTRIBUTION)

    def digest(self) -> str:
        """Return the SHA-256 of both files."""
        return sha256_of(self._analytes, VITAL_SIGNS)

    def rows(self) -> Iterator[Row]:
        """Yield analytes and vital signs."""
        for code, analyte in json.loads(self._analytes.read_text("utf-8")).items():
            if not _is_analyte(code, analyte):
                raise CodesError(
                    f"{self._analytes.name}: the entry {code} has an unknown form.",
                    code=CodesErrorCode.CODES_ROW,
                )
            yield CodeRow(
                code=checked(code, self._analytes.name),
                display=analyte["name"],
                kind="laboratory",
                properties={
                    "specimens": analyte["specimen"],
                    "units": analyte["traditional_units"],
                    "si_units": analyte["si_units"],
                    "si_factor": analyte["conversion_factor"],
                },
            )
        for number, line in TextFile(VITAL_SIGNS).lines():
            if not line.startswith("#"):
                code, _, display = line.partition("|")
                checked(code, VITAL_SIGNS.name, number)
                yield CodeRow(code=code, display=display, kind="vital sign")


@dataclass(frozen=True)
class LoincCsv:
    """The table `Loinc.csv` of a release of LOINC."""

    files: UserFiles

    key = SystemKey.LOINC
    licence = "LOINC licence (free with notice)"
    revision = 1
    has_second_displays = False

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._file.name

    @cached_property
    def _file(self) -> TextFile:
        return self.files.find(r"Loinc\.csv", kind="Loinc.csv")

    def version(self) -> str:
        """Return the newest release that changed a code; the file states no release of its own."""
        newest: tuple[int, ...] = (0,)
        for number, row in self._records():
            try:
                newest = max(newest, tuple(map(int, row["VersionLastChanged"].split("."))))
            except ValueError:
                raise self._file.refuse_row(number, "has no number as VersionLastChanged") from None
        return ".".join(map(str, newest))

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return digest_of(self._file)

    def rows(self) -> Iterator[Row]:
        """Yield every code that is not deprecated."""
        for number, row in self._records():
            code = checked(row["LOINC_NUM"], self._file.name, number)
            if row["STATUS"] not in _STATUSES:
                raise self._file.refuse_row(number, "has an unknown STATUS")
            if row["STATUS"] == "DEPRECATED":
                continue
            display = row["LONG_COMMON_NAME"]
            if not display:
                raise self._file.refuse_row(number, "has no LONG_COMMON_NAME")
            yield CodeRow(
                code=code,
                display=display,
                kind=row["CLASS"],
                properties={
                    name: row[column] for column, name in _PROPERTIES.items() if row.get(column)
                },
            )
            for column, kind in _TERMS.items():
                if row.get(column):
                    yield TermRow(code=code, text=row[column], kind=kind)

    def _records(self) -> Iterator[tuple[int, dict[str, str]]]:
        number = 0

        def text() -> Iterator[str]:
            nonlocal number
            for at, line in self._file.lines():
                number = at
                yield f"{line}\n"

        reader = csv.reader(text(), strict=True)
        try:
            header = next(reader, [])
            missing = [column for column in _NEEDED if column not in header]
            if missing:
                raise self._file.refuse_header(f"the header has no column {missing[0]}")
            if len(set(header)) != len(header):
                raise self._file.refuse_header("the header names a column twice")
            for cells in reader:
                if len(cells) != len(header):
                    raise self._file.refuse_row(
                        number, f"has {len(cells)} of {len(header)} columns"
                    )
                yield number, dict(zip(header, cells, strict=True))
        except csv.Error:
            raise self._file.refuse_row(number, "has an open or misplaced quote") from None


def checked(code: str, name: str, number: int | None = None) -> str:
    """Return a LOINC code; raise CodesError if its form or its check digit is wrong."""
    if not is_loinc(code):
        where = f"line {number}: " if number else ""
        raise CodesError(
            f"{name}: {where}{code[:20]!r} is no LOINC code, or its check digit is wrong.",
            code=CodesErrorCode.CODES_CHECK_DIGIT,
        )
    return code


def _is_analyte(code: str, analyte: Mapping[str, Any]) -> bool:
    return analyte.get("loinc_num") == code and all(
        isinstance(analyte.get(name), kind) for name, kind in _ANALYTE.items()
    )
