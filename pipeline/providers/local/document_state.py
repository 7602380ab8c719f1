"""The shared state of the rules that read one document: words, lines, sentences, zones, entities.

Rules add entities to `found`. Text that a rule has claimed is not read again by a later rule.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property

from pipeline.clinical.date_forms import DATE_FORM, DateOrder, iso_day
from pipeline.clinical.page_text.lines import PrintedLine, Sentence, lines_of, sentences_of
from pipeline.providers.local.assertions.check_boxes import BoxTick, box_items, parted
from pipeline.providers.local.assertions.judgement import Assertion, Assertions
from pipeline.providers.local.assertions.person_headings import PersonHeadings
from pipeline.providers.local.finding import Finding
from pipeline.providers.local.text.date_sources import source_orders
from pipeline.providers.local.text.document import Document
from pipeline.providers.local.text.latest_reading import Moment
from pipeline.providers.local.text.page_turns import continued_sentences
from pipeline.providers.local.text.struck_words import without_struck
from pipeline.providers.local.text.tokens import Token, tokenize
from pipeline.providers.local.text.zones import Zones, zones_of

_DAY = re.compile(DATE_FORM)
_OWN_DATE = re.compile(
    r"^[ ]*(?:(?:date|time)[ ]of[ ](?:service|visit|encounter|admission)|dos|(?:visit|service"
    r"|encounter|admission|collection|exam)[ ]date|date|seen"
    r"|collected|admitted|arrival)[^:\n]{0,16}:",
    re.I,
)

_BEGINS = re.compile(
    r"\b(?:(?:date|time)[ ]of[ ](?:service|visit|encounter|admission)|DOS"
    r"|(?:visit|service|encounter|admission|admit)[ ]date|admitted|arrival|seen)\b[^:\n\d]{0,16}:"
    rf"[ ]*(?P<day>{DATE_FORM})",
    re.I,
)
"""The date of the encounter itself, not of a specimen."""
_NOTE = re.compile(rf"(?m)^[ ]*[A-Z][A-Z &]*\bNOTE\b[^\n:.]{{0,30}}?[ ](?P<day>{DATE_FORM})[ ]*$")
"""A note of the encounter with its date (`PROGRESS NOTE - HOSPITAL DAY 8 - 02/13/2024`)."""
_LONGEST_STAY = timedelta(days=90)


@dataclass(kw_only=True)
class DocumentState:
    """The state that the rules of one request share; it lives as long as the request."""

    document: Document
    text: str = field(repr=False)
    lines: list[PrintedLine] = field(repr=False)
    sentences: list[Sentence]
    tokens: list[Token] = field(repr=False)
    zones: Zones
    assertions: Assertions
    findings: list[Finding] = field(default_factory=list, repr=False)
    no_known_allergies: bool | None = None
    _claimed: bytearray = field(repr=False)
    """One byte per character; 1 if a rule has claimed the character."""

    @classmethod
    def of(cls, document: Document) -> DocumentState:
        """Prepare a document for the rules."""
        lines = lines_of(document.text)
        zones = zones_of(document.text, lines, document.raw)
        tokens = tokenize(document.text)
        headed = frozenset(document.text.rfind("\n", 0, zone.start) + 1 for zone in zones.all)
        items = box_items(lines, document.text, document.raw, headed)
        sentences = parted(sentences_of(document.text, lines), items)
        persons = PersonHeadings(document.text, lines, zones.all)
        state = cls(
            document=document,
            text=document.text,
            lines=lines,
            sentences=sentences,
            tokens=tokens,
            zones=zones,
            assertions=Assertions(
                document.text,
                sentences,
                zones,
                items,
                persons,
                continued_sentences(document, lines, sentences),
            ),
            _claimed=bytearray(len(document.text)),
        )
        for item in items:
            if item.tick is BoxTick.OPEN:
                state.claim(item.start, item.end)
        return state

    def add(self, finding: Finding) -> None:
        """Add an entity and claim its text."""
        self.findings.append(finding)
        self.claim(finding.start, finding.end)

    def claim(self, start: int, end: int) -> None:
        """Keep later rules away from `text[start:end]`."""
        self._claimed[start:end] = b"\1" * (end - start)

    def is_claimed(self, start: int, end: int) -> bool:
        """Return whether any of `text[start:end]` is claimed."""
        return self._claimed.find(1, start, end) >= 0

    def judge(
        self,
        start: int,
        end: int,
        *,
        lasting: bool = False,
        is_act: bool = False,
        is_drug: bool = False,
    ) -> Assertion:
        """Judge the mention at `text[start:end]`, as `Assertions.judge` does."""
        return self.assertions.judge(start, end, lasting=lasting, is_act=is_act, is_drug=is_drug)

    @cached_property
    def date_order(self) -> DateOrder | None:
        """The order of day and month that the dates of the pages' source prove."""
        slices = [piece.slice for piece in self.document.pieces]
        orders = source_orders((part.page, part.text) for part in slices)
        own = {orders[part.page].order for part in slices if not part.context}
        return own.pop() if len(own) == 1 else None

    @cached_property
    def own_dates(self) -> str:
        """The lines that print the date of the document's own encounter."""
        return "\n".join(
            line.text
            for line in self.lines
            if ":" in line.text and _OWN_DATE.search(line.text) and "birth" not in line.text.lower()
        )

    @cached_property
    def unstruck(self) -> str:
        """The text with blanks in place of struck-through words."""
        return without_struck(self.text)

    @cached_property
    def own_day(self) -> date | None:
        """The date of the document's own encounter; None if the lines do not prove one day."""
        days = {iso_day(m.group(), self.date_order) for m in _DAY.finditer(self.own_dates)}
        return date.fromisoformat(day) if len(days) == 1 and (day := days.pop()) else None

    @cached_property
    def first_day(self) -> date | None:
        """The day on which the document's own encounter begins; None if no line proves a day."""
        found = [m["day"] for pattern in (_BEGINS, _NOTE) for m in pattern.finditer(self.text)]
        days = {iso_day(day, self.date_order) for day in found}
        known = sorted(day for day in days if day)
        return date.fromisoformat(known[0]) if known and None not in days else None

    @cached_property
    def _notes(self) -> tuple[list[int], list[str]]:
        notes = list(_NOTE.finditer(self.text))
        return [m.start() for m in notes], [m["day"] for m in notes]

    def note_day_at(self, offset: int) -> str | None:
        """Return the printed day of the note that contains `offset`, None above the first note."""
        starts, days = self._notes
        index = bisect.bisect_right(starts, offset) - 1
        return days[index] if index >= 0 else None

    def precedes(self, moment: Moment | None) -> bool:
        """Return whether a reading can be older than the encounter, in any order of day and month.

        A moment without a year belongs to the encounter's year.
        """
        first = self.first_day
        if moment is None or first is None:
            return True
        for year, month, day, _ in filter(None, moment.keys):
            try:
                then = date(year if moment.day else first.year, month, day)
            except ValueError:
                return True
            if not first <= then <= first + _LONGEST_STAY:
                return True
        return False

    def tokens_in(self, start: int, end: int) -> list[Token]:
        """Return the tokens that lie within `text[start:end]`."""
        first = bisect.bisect_left(self.tokens, (start,))
        last = first
        while last < len(self.tokens) and self.tokens[last].end <= end:
            last += 1
        return self.tokens[first:last]

    def line_at(self, offset: int) -> int:
        """Return the index of the line that contains `offset`."""
        return max(0, bisect.bisect_right(self.lines, (offset, len(self.text) + 1)) - 1)
