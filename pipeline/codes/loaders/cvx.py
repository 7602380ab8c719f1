"""CVX, the CDC's codes of vaccines, from the user's own copy of the CDC's text.

The text has bars or tabs between the columns. Without a header, the columns have the CDC's order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pipeline.codes.loaders.files import TextFile, UserFiles, digest_of
from pipeline.codes.loaders.rows import CodeRow, Row, TermRow
from pipeline.models.codes import SystemKey

_ORDER = ("code", "short", "full", "notes", "status", "nonvaccine", "updated")
_NAMES = {
    "cvx code": "code",
    "cvx": "code",
    "cvx short description": "short",
    "short description": "short",
    "full vaccine name": "full",
    "notes": "notes",
    "note": "notes",
    "vaccine status": "status",
    "vaccinestatus": "status",
    "status": "status",
    "nonvaccine": "nonvaccine",
    "last updated": "updated",
    "last updated date": "updated",
    "update date": "updated",
}
_NEEDED = ("code", "short", "full", "status")
_CODE = re.compile(r"[0-9]{1,3}")
_DATE = re.compile(
    r"(?:[0-9]{4}[/-][0-9]{1,2}[/-][0-9]{1,2}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{4})(?: .*)?"
)
_STATUSES = frozenset({"active", "inactive", "pending", "non-us", "never active"})


@dataclass(frozen=True)
class Cvx:
    """The reader of the CDC's list of vaccines."""

    files: UserFiles

    key = SystemKey.CVX
    licence = "public domain (CDC)"
    revision = 1
    has_second_displays = False

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._file.name

    @cached_property
    def _file(self) -> TextFile:
        return self.files.find(r".*cvx.*\.(?:txt|csv|tsv)", kind="cvx.txt")

    def version(self) -> str:
        """Return the newest date of a row; without dates, the beginning of the digest."""
        dates = [_iso(row["updated"]) for _, row in self._records() if row.get("updated")]
        return max(dates, default=f"sha256 {self.digest()[:12]}")

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return digest_of(self._file)

    def rows(self) -> Iterator[Row]:
        """Yield every code; records also name vaccines that are no longer given."""
        for _, row in self._records():
            yield CodeRow(
                code=row["code"],
                display=row["short"],
                kind=row["status"].lower(),
                properties={
                    name: row[name] for name in ("notes", "nonvaccine", "updated") if row.get(name)
                },
            )
            yield TermRow(code=row["code"], text=row["full"] or row["short"], kind="synonym")

    def _records(self) -> Iterator[tuple[int, dict[str, str]]]:
        columns: tuple[str, ...] = ()
        separator = "|"
        for number, line in self._file.lines():
            if not columns:
                separator = "|" if "|" in line else "\t"
                first = [cell.strip() for cell in line.split(separator)]
                columns = self._columns(first)
                if not _CODE.fullmatch(first[0]):
                    continue
            cells = [cell.strip() for cell in line.split(separator)]
            if len(cells) == len(columns) + 1 and not cells[-1]:
                cells.pop()
            if len(cells) != len(columns):
                raise self._file.refuse_row(number, f"has {len(cells)} of {len(columns)} columns")
            yield number, self._checked(number, dict(zip(columns, cells, strict=True)))

    def _columns(self, cells: list[str]) -> tuple[str, ...]:
        if _CODE.fullmatch(cells[0]):
            if len(cells) in (len(_ORDER), len(_ORDER) + 1):
                return _ORDER
            raise self._file.refuse_header(f"the first row has not the {len(_ORDER)} columns")
        found = tuple(_NAMES.get(cell.lower(), cell.lower()) for cell in cells if cell)
        missing = [name for name in _NEEDED if name not in found]
        if missing:
            raise self._file.refuse_header(f"the header has no column for {missing[0]}")
        return found

    def _checked(self, number: int, row: dict[str, str]) -> dict[str, str]:
        if not _CODE.fullmatch(row["code"]):
            raise self._file.refuse_row(number, "has no CVX code of one to three digits")
        if not row["short"]:
            raise self._file.refuse_row(number, "has no name")
        if row["status"].lower() not in _STATUSES:
            raise self._file.refuse_row(number, "has an unknown status")
        if row.get("updated") and not _DATE.fullmatch(row["updated"]):
            raise self._file.refuse_row(number, "has no date of the last update")
        return row


def _iso(date: str) -> str:
    """Return a date as `2010-05-28`; the CDC writes `2010/05/28` or `5/28/2010`."""
    first, second, third = re.split(r"[/-]", date.split(" ")[0])
    year, month, day = (first, second, third) if len(first) == 4 else (third, first, second)
    return f"{year}-{int(month):02}-{int(day):02}"
