"""The local engine's reading of the pages that another engine was asked about.

The reading keeps what a comparison needs: the entities, and the judgement of any place of the
text. A page in a language that the engine does not read is not read.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from pydantic import TypeAdapter

from pipeline.core.types import PageSlice, Span
from pipeline.providers.local.assertions.judgement import Assertion
from pipeline.providers.local.engine import placed_entities, read
from pipeline.providers.local.text.language import languages
from pipeline.providers.schemas import FoundEntity, ZoneType

_ENTITIES = TypeAdapter(list[FoundEntity])


class SecondReading:
    """The engine's reading of one question; offsets count on the pages.

    A reading waits in memory until its encounter is published, and an encounter of 1,000 pages has
    a hundred readings. For ten dense pages the entities as objects need 1.8 MB, and compressed a
    tenth of that.
    """

    def __init__(self, slices: Sequence[PageSlice]) -> None:
        _, unsupported = languages(slices)
        state = read(tuple(s for s in slices if s.page not in unsupported))
        found = placed_entities(state, include_zones=True)
        self._entities = zlib.compress(_ENTITIES.dump_json(found, exclude_defaults=True), 1)
        self._assertions = state.assertions
        self._zones = state.zones
        self._pieces = state.document.pieces

    def entities(self) -> list[FoundEntity]:
        """Return the entities that the engine found, in the order of the text."""
        return _ENTITIES.validate_json(zlib.decompress(self._entities))

    def covers(self, span: Span) -> bool:
        """Return whether the engine has read a place."""
        return self._offset(span) is not None

    def judge(self, span: Span) -> Assertion:
        """Judge the mention at a place; all None if the engine has not read the place."""
        at = self._offset(span)
        return Assertion() if at is None else self._assertions.judge(at, at + len(span))

    def zone(self, span: Span) -> ZoneType | None:
        """Return the section of a place; None if the place is in no known section."""
        at = self._offset(span)
        return None if at is None else self._zones.type_at(at)

    def _offset(self, span: Span) -> int | None:
        """Return where a place of a page begins in the text that was read."""
        for piece in self._pieces:
            at = span.start - piece.slice.start
            if piece.slice.page == span.page and 0 <= at < len(piece.slice.text):
                return piece.start + at
        return None
