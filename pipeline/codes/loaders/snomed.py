"""SNOMED CT from the user's own release in RF2: the snapshots of concepts, names and relations.

Active components only. No file of SNOMED CT is part of medproc: the user's own licence applies.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pipeline.codes.loaders.check_digits import is_sctid
from pipeline.codes.loaders.files import TextFile, UserFiles, digest_of
from pipeline.codes.loaders.refusals import CodesError, CodesErrorCode
from pipeline.codes.loaders.rows import CodeRow, PropertyRow, Row, TermRow
from pipeline.models.codes import SystemKey

CONCEPT = ("id", "effectiveTime", "active", "moduleId", "definitionStatusId")
DESCRIPTION = (
    "id", "effectiveTime", "active", "moduleId", "conceptId", "languageCode", "typeId", "term",
    "caseSignificanceId",
)  # fmt: skip
RELATIONSHIP = (
    "id", "effectiveTime", "active", "moduleId", "sourceId", "destinationId", "relationshipGroup",
    "typeId", "characteristicTypeId", "modifierId",
)  # fmt: skip
FULLY_SPECIFIED, SYNONYM = "900000000000003001", "900000000000013009"
IS_A = "116680003"
_IDENTIFIERS = frozenset(
    {
        "id", "moduleId", "definitionStatusId", "conceptId", "typeId", "caseSignificanceId",
        "sourceId", "destinationId", "characteristicTypeId", "modifierId",
    }
)  # fmt: skip
_TIME = re.compile(r"[0-9]{8}")
_TAG = re.compile(r"\(([^()]+)\)$")


@dataclass(frozen=True)
class SnomedCt:
    """The reader of a release of SNOMED CT."""

    files: UserFiles

    key = SystemKey.SNOMEDCT
    licence = "SNOMED CT affiliate licence of the user"
    revision = 1
    has_second_displays = True

    @property
    def name(self) -> str:
        """The name of the folder or archive."""
        return self.files.name

    @cached_property
    def _concepts(self) -> TextFile:
        return self._snapshot("Concept", r"_[^_]+")

    @cached_property
    def _descriptions(self) -> TextFile:
        return self._snapshot("Description", r"-en_[^_]+")

    @cached_property
    def _relationships(self) -> TextFile:
        return self._snapshot("Relationship", r"_[^_]+")

    def _snapshot(self, kind: str, rest: str) -> TextFile:
        name = f"sct2_{kind}_Snapshot"
        found = self.files.look_for(rf"x?{name}{rest}_[0-9]{{8}}\.txt")
        if found is None:
            raise CodesError(
                f"{self.name} holds no {name}…txt. Name the folder or the archive of the release.",
                code=CodesErrorCode.CODES_FILE_MISSING,
            )
        return found

    def version(self) -> str:
        """Return the date in the name of the concepts' file."""
        return self._concepts.name.removesuffix(".txt").rpartition("_")[2]

    def digest(self) -> str:
        """Return the SHA-256 of the three files."""
        return digest_of(self._concepts, self._descriptions, self._relationships)

    def rows(self) -> Iterator[Row]:
        """Yield concepts, then synonyms, then parents.

        Memory holds the ids of the active concepts, with eight bytes for each.
        """
        active = self._active()
        # A parent is a property: a concept can have several.
        for cells in _records(self._descriptions, DESCRIPTION):
            if cells["typeId"] == FULLY_SPECIFIED and _holds(active, cells["conceptId"]):
                tag = _TAG.search(cells["term"])
                yield CodeRow(
                    code=cells["conceptId"],
                    display=cells["term"],
                    kind=tag[1] if tag else "",
                )
        for cells in _records(self._descriptions, DESCRIPTION):
            if cells["typeId"] == SYNONYM and _holds(active, cells["conceptId"]):
                yield TermRow(code=cells["conceptId"], text=cells["term"], kind="synonym")
        for cells in _records(self._relationships, RELATIONSHIP):
            source, target = cells["sourceId"], cells["destinationId"]
            if cells["typeId"] == IS_A and _holds(active, source) and _holds(active, target):
                yield PropertyRow(code=source, name="parents", value=target)

    def _active(self) -> array[int]:
        found = array("Q", (int(cells["id"]) for cells in _records(self._concepts, CONCEPT)))
        return array("Q", sorted(found))


def _holds(active: array[int], code: str) -> bool:
    at = bisect_left(active, int(code))
    return at < len(active) and active[at] == int(code)


def _records(file: TextFile, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield the active rows of a file; check every row."""
    checked = [at for at, name in enumerate(columns) if name in _IDENTIFIERS]
    known: dict[str, bool] = {}
    lines = file.lines()
    _, header = next(lines)
    if tuple(header.split("\t")) != columns:
        raise file.refuse_header(f"the header is not {', '.join(columns)}")
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise file.refuse_row(number, f"has {len(cells)} of {len(columns)} columns")
        if not _TIME.fullmatch(cells[1]) or cells[2] not in ("0", "1"):
            raise file.refuse_row(number, "has no date of eight digits or no state 0 or 1")
        for at in checked:
            if not _is_sctid(cells[at], known):
                raise CodesError(
                    f"{file.name}: line {number}: {cells[at][:20]!r} is no SNOMED CT identifier, or"
                    " its check digit is wrong.",
                    code=CodesErrorCode.CODES_CHECK_DIGIT,
                )
        if cells[2] == "1":
            yield dict(zip(columns, cells, strict=True))


def _is_sctid(text: str, known: dict[str, bool]) -> bool:
    """Check an identifier; remember the few that every row repeats."""
    if text in known:
        return True
    if not is_sctid(text):
        return False
    if text.startswith("900000000000") and len(known) < 100:
        known[text] = True
    return True
