"""RxNorm from the user's own release: `RXNCONSO.RRF` and, if present, `RXNREL.RRF`.

Only RxNorm's own names are read (SAB=RXNORM): the names of other sources have other licences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pipeline.codes.loaders.files import TextFile, UserFiles, digest_of
from pipeline.codes.loaders.rows import CodeRow, PropertyRow, Row, TermRow
from pipeline.models.codes import SystemKey

CONSO_COLUMNS = 18
REL_COLUMNS = 16
_RXCUI, _LAT, _SAB, _TTY, _STR, _SUPPRESS = 0, 1, 11, 12, 14, 16
_SYNONYMS = frozenset({"SY", "TMSY", "PSN", "ET"})
_RELATIONS = frozenset(
    {
        "has_ingredient", "has_precise_ingredient", "has_ingredients", "has_dose_form",
        "tradename_of", "consists_of", "contains", "isa", "form_of",
    }
)  # fmt: skip
"""Relations that lead from a product to its parts, from a brand to its substance, and upwards."""


@dataclass(frozen=True)
class RxNorm:
    """The reader of a release of RxNorm."""

    files: UserFiles

    key = SystemKey.RXNORM
    licence = "public domain (NLM), with notice; RxNorm's own names only"
    revision = 1
    has_second_displays = True

    @property
    def name(self) -> str:
        """The name of the file, folder or archive."""
        return self.files.name

    @cached_property
    def _names(self) -> TextFile:
        return self.files.find(r"RXNCONSO\.RRF", kind="RXNCONSO.RRF")

    @cached_property
    def _relations(self) -> TextFile | None:
        return self.files.look_for(r"RXNREL\.RRF")

    def version(self) -> str:
        """Return the name of the release; the files state no version of their own."""
        return self.files.release() or f"sha256 {self.digest()[:12]}"

    def digest(self) -> str:
        """Return the SHA-256 of the files."""
        return digest_of(*filter(None, (self._names, self._relations)))

    def rows(self) -> Iterator[Row]:
        """Yield concepts, then their synonyms, then their relations."""
        for number, cells in self._own_names():
            if cells[_TTY] not in _SYNONYMS:
                if not cells[_RXCUI].isdecimal() or not cells[_STR]:
                    raise self._names.refuse_row(number, "has no RXCUI or no name")
                yield CodeRow(code=cells[_RXCUI], display=cells[_STR], kind=cells[_TTY])
        for _, cells in self._own_names():
            # A second main name of a concept is a further name.
            yield TermRow(code=cells[_RXCUI], text=cells[_STR], kind=_kind(cells[_TTY]))
        if self._relations is not None:
            yield from self._related(self._relations)

    def _own_names(self) -> Iterator[tuple[int, list[str]]]:
        for number, cells in _cells(self._names, CONSO_COLUMNS):
            own = cells[_SAB] == "RXNORM" and cells[_LAT] == "ENG"
            if own and cells[_SUPPRESS] == "N":
                yield number, cells

    @staticmethod
    def _related(file: TextFile) -> Iterator[Row]:
        for _, cells in _cells(file, REL_COLUMNS):
            first, second, relation, source, suppress = (cells[at] for at in (0, 4, 7, 10, 14))
            # The row reads from right to left: the second concept has the relation to the first.
            if source != "RXNORM" or relation not in _RELATIONS or suppress not in ("", "N"):
                continue
            if first and second:
                yield PropertyRow(code=second, name=relation, value=first)


def _kind(term_type: str) -> str:
    return {"BN": "brand", "PSN": "prescribable"}.get(term_type, "synonym")


def _cells(file: TextFile, columns: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in file.lines():
        # Each field ends with a bar, so a cut row lacks the last bar.
        *cells, rest = line.split("|")
        if rest or len(cells) != columns:
            if number == 1:
                raise file.refuse_header(f"the first line has not the {columns} columns of RRF")
            raise file.refuse_row(number, f"has not {columns} columns, each ended by a bar")
        yield number, cells
