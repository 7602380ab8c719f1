"""Pass 0.5 of the local engine: find the encounters of a chunk of pages, as spans of lines.

A new encounter begins where a head states another service date, facility, kind of document or
patient. All other text continues the open encounter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from pipeline.core.identity import compare
from pipeline.core.types import PageSlice
from pipeline.providers.local.discovery.document_heads import DocumentHead, read_head
from pipeline.providers.local.discovery.encounter_rules import Open, judge, who
from pipeline.providers.local.discovery.labels import Weight, fields_of
from pipeline.providers.local.text.date_sources import source_orders
from pipeline.providers.local.text.language import languages
from pipeline.providers.local.text.titles import (
    facility_of,
    is_address,
    is_page_line,
    running_facility,
    title_of,
)
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import DiscoveryReply, FoundEncounter, LineSpan

_REACH = 5
"""The most lines between two parts of one head, such as a subtitle or an address."""
_MAX_HEAD = 14
_PREAMBLE = 4
_STREET = re.compile(r"\d{1,5}\W+[A-Z][a-z]+\s[^\d:]{4,50}$")
"""A street and town without the word that marks an address (`Street`, `Road`)."""
_LETTERHEAD = 3
"""The most lines of a letterhead that a scanner has made unreadable."""
_COVER = re.compile(
    r"(?i)fax cover|cover sheet|facsimile|release of information|records? requested|"
    r"request for (?:medical )?records|number of pages|pages including cover|"
    r"transmission in error|table of contents|intentionally left blank|certification of records"
)
_COVER_LINES = 25


@dataclass
class _Line:
    page: int
    number: int
    text: str = field(repr=False)
    own: bool
    running: bool = False


@dataclass
class _Found:
    """An encounter under construction."""

    open: Open
    rule: str
    from_before: bool
    """This chunk does not show where the encounter began."""
    lines: list[_Line] = field(default_factory=list, repr=False)
    headed: int = 0
    """The number of its non-blank lines up to the end of its last head."""


def discover(question: Question) -> DiscoveryReply:
    """Report the encounters of the question's own pages and of its context page."""
    main, unsupported = languages(question.slices)
    reader = _Reader(question.slices, unsupported)
    reader.read()
    first_own = next((s.page for s in question.slices if not s.context), 1)
    return DiscoveryReply(
        item_token=question.item_token,
        language=main,
        unsupported_pages=sorted(
            {s.page for s in question.slices if s.page in unsupported and not s.context}
        ),
        encounters=[
            _report(found, started_before=first_own > 1, is_last=found is reader.current)
            for found in reader.found
            if any(line.own for line in found.lines)
        ],
    )


class _Reader:
    """Reads pages from top to bottom and assigns each line to an encounter or to none."""

    def __init__(self, slices: Sequence[PageSlice], unsupported: set[int]) -> None:
        self._slices = [s for s in slices if s.text.strip()]
        self._unsupported = unsupported
        self._repeated = _repeated_lines(self._slices)
        self._orders = source_orders((part.page, part.text) for part in self._slices)
        self._waiting: list[_Line] = []
        """Lines of pages in another language, which may belong to an encounter."""
        self._closed = ""
        self._running = DocumentHead()
        """The statements of the page's running header."""
        self.found: list[_Found] = []
        self.current: _Found | None = None

    def read(self) -> None:
        """Read all pages."""
        for part in self._slices:
            lines = self._lines(part)
            if part.page in self._unsupported:
                self._waiting += [] if _shows_head(lines) else lines
                if _shows_head(lines):
                    self._waiting.clear()
                    self._close("after_unsupported")
            elif _is_cover(part.text):
                self._waiting.clear()
                self._close("after_cover")
            else:
                self._page(lines)

    def _page(self, lines: list[_Line]) -> None:
        top = list(takewhile(lambda line: line.running or not line.text.strip(), lines))
        source = self._orders.get(lines[0].page)
        order = source.order if source else None
        self._running = read_head([line.text for line in top], order)
        self._running.facility = _letterhead_facility(lines)
        heads = [
            (start, end, read_head([x.text for x in lines[start:end]], order))
            for start, end in _heads(lines)
        ]
        begins = bool(heads) and heads[0][0] == len(top) and heads[0][2].complete
        if not begins and self._is_other_patient(self._running):
            self._open(Open(self._running), "patient")
        at = 0
        for place, (start, end, head) in enumerate(heads):
            above = lines[at:start]
            if at == 0 and start == len(top) and not head.complete:
                follows = heads[place + 1] if place + 1 < len(heads) else None
                if follows and follows[0] == end and follows[2].complete:
                    top = lines[:end]
                    continue
            head.facility = head.facility or self._running.facility
            if not head.who and head.day is None:
                continue
            if not head.complete and not self._next_specimen(head, above):
                self._continue(above)
                self._adopt(head, lines[start:end])
            elif at == 0 and _is_letterhead(lines[len(top) : start]):
                self._begin(head, lines[:end])
            else:
                self._continue(above)
                self._begin(head, lines[start:end], inside=True)
            at = end
        self._continue(lines[at:])

    def _is_other_patient(self, head: DocumentHead) -> bool:
        """Return whether a running header names another patient than the open encounter."""
        if self.current is None or not (head.name or who(head).stated > 1):
            return False
        return compare(self.current.open.patient, who(head)).disagrees

    def _next_specimen(self, head: DocumentHead, above: list[_Line]) -> bool:
        """Return whether a bare `Collected:` line begins the next report of a series."""
        dated = head.opens and head.weight is Weight.SPECIMEN
        reports = ("laboratory", "imaging", "pathology")
        current = self.current
        if not dated or current is None or current.open.type not in reports:
            return False
        filled = sum(bool(line.text.strip()) for line in (*current.lines, *above))
        return filled > current.headed + 2

    def _continue(self, lines: list[_Line]) -> None:
        """Assign lines without their own head to the open encounter."""
        if not any(line.text.strip() for line in lines):
            return
        if self.current is None:
            if all(line.running or not line.text.strip() for line in lines):
                return
            self._open(Open(self._running), self._why())
        self._give(lines)

    def _adopt(self, head: DocumentHead, lines: list[_Line]) -> None:
        """Add an incomplete head, such as a running header, to the open encounter."""
        current = self.current
        named = who(head).stated > 1 or lines[0].number <= 3
        if current and named and compare(current.open.patient, who(head)).disagrees:
            self._open(Open(head), "patient")
        elif current is None:
            self._open(Open(head), self._why())
        else:
            current.open.take_patient(head)
        self._give(lines, head=True)

    def _begin(self, head: DocumentHead, lines: list[_Line], *, inside: bool = False) -> None:
        """Compare a complete head with the open encounter and the earlier encounters of this chunk.

        `inside` means that the head is below other text of its page.
        """
        rule = judge(self.current.open, head) if self.current else self._why()
        if rule == "head" and self._is_preamble():
            rule = ""
        if not rule and inside and head.letterhead and not (head.day or head.admitted):
            rule = "letterhead"
        if rule:
            same = next(
                (f for f in self.found if f is not self.current and f.open.is_same(head)), None
            )
            if same is not None:
                self.current = same
                self._waiting.clear()
                same.open.take(head)
            else:
                self._waiting.clear()
                opened = Open(head)
                if self.current is not None and head.lone:
                    opened.inherit(self.current.open)
                self._open(opened, rule, is_complete=True)
        elif self.current is not None:
            self.current.open.take(head)
        self._give(lines, head=True)

    def _why(self) -> str:
        """Return the rule of an encounter that begins while no encounter is open."""
        begins = not self._slices or self._slices[0].page == 1
        return self._closed or ("start" if begins else "head")

    def _is_preamble(self) -> bool:
        """Return whether the open encounter is only a few lines at the top of the record."""
        current = self.current
        if current is None or len(self.found) > 1 or self._slices[0].page > 1:
            return False
        filled = [line for line in current.lines if line.text.strip()]
        return len(filled) <= _PREAMBLE and {line.page for line in filled} == {1}

    def _open(self, opened: Open, rule: str, *, is_complete: bool = False) -> None:
        self.current = _Found(opened, rule, from_before=not self.found and not is_complete)
        self.found.append(self.current)
        self._closed = ""

    def _give(self, lines: list[_Line], *, head: bool = False) -> None:
        if self.current is not None:
            self.current.lines += [*self._waiting, *lines]
            self._waiting.clear()
            if head:
                filled = (line for line in self.current.lines if line.text.strip())
                self.current.headed = sum(1 for _ in filled)

    def _close(self, why: str) -> None:
        self.current = None
        self._closed = why

    def _lines(self, part: PageSlice) -> list[_Line]:
        lines = [
            _Line(part.page, number, text, not part.context)
            for number, text in enumerate(part.text.split("\n"), start=1)
        ]
        filled = [line for line in lines if line.text.strip()]
        for edge in (filled, filled[::-1]):
            for line in edge:
                line.running = is_page_line(line.text) or (
                    _masked(line.text) in self._repeated and not _begins(line.text)
                )
                if not line.running:
                    break
        return lines


def _heads(lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """Yield start and end (exclusive) of each run of lines that may be a head."""
    marks = [(index, kind) for index, line in enumerate(lines) if (kind := _mark(line))]
    start = end = -1
    seen_field = False
    for index, kind in marks:
        near = start >= 0 and index - end < _REACH and index - start < _MAX_HEAD
        between = lines[end + 1 : index] if start >= 0 else []
        near = near and all(_may_stand_between(line) for line in between)
        is_next_letterhead = kind == "facility" and seen_field
        if not near or is_next_letterhead:
            if start >= 0:
                yield start, end + 1
            start, seen_field = index, False
        seen_field = seen_field or kind == "field"
        end = index
    if start >= 0:
        yield start, end + 1


def _mark(line: _Line) -> str:
    """Return `field`, `facility` or `title` for a line that can be part of a head, else ""."""
    if line.running or not line.text.strip() or len(line.text) > 200:
        return ""
    if any(f.role != "other" for f in fields_of(line.text)):
        return "field"
    if facility_of(line.text):
        return "facility"
    return "title" if title_of(line.text) else ""


def _may_stand_between(line: _Line) -> bool:
    text = line.text.strip()
    if line.running or not text or is_address(text):
        return True
    if any(c.isdigit() for c in text) and not fields_of(text):
        return bool(_STREET.match(text))
    return len(text) <= 70 and not text.endswith(".") and not text.isupper()


def _is_letterhead(lines: list[_Line]) -> bool:
    """Return whether the lines before a page's first head belong to that head."""
    return len(lines) <= _LETTERHEAD and all(_may_stand_between(line) for line in lines)


def _shows_head(lines: list[_Line]) -> bool:
    """Return whether the top of a page in another language names its own facility."""
    top = [line for line in lines if line.text.strip()][:4]
    return any(facility_of(line.text) for line in top)


def _letterhead_facility(lines: list[_Line]) -> str | None:
    """Return the facility that the running header of a page names."""
    for line in lines:
        if line.text.strip() and not line.running:
            return running_facility(line.text)
        found = running_facility(line.text)
        if found:
            return found
    return None


def _begins(text: str) -> bool:
    """Return whether a line that repeats on several pages can begin a document."""
    dated = any(f.day is not None and f.role != "born" for f in fields_of(text))
    return dated or bool(facility_of(text) or title_of(text))


def _is_cover(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > _COVER_LINES:
        return False
    hits = {m[0].casefold() for m in _COVER.finditer(text)}
    alone = len(lines) <= 3 and "intentionally left blank" in hits
    return alone or len(hits) >= 2


def _repeated_lines(slices: Sequence[PageSlice]) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for part in slices:
        lines = [_masked(line) for line in part.text.split("\n") if line.strip()]
        counts.update(set(lines[:3] + lines[-3:]))
    return frozenset(line for line, seen in counts.items() if seen > 1 and len(line) > 8)


def _masked(text: str) -> str:
    return re.sub(r"(?i)(page\s*)\d+", r"\1#", " ".join(text.split())).casefold()


def _report(found_facts: _Found, *, started_before: bool, is_last: bool) -> FoundEncounter:
    head, opened = found_facts.open.head, found_facts.open
    context = any(not line.own for line in found_facts.lines)
    day = opened.day
    end = head.discharged if day is None or not head.discharged or head.discharged > day else None
    return FoundEncounter(
        encounter_type=opened.type,
        spans=list(_spans(found_facts.lines)),
        open_at_start=context or (found_facts.from_before and started_before),
        open_at_end=is_last,
        date_start=day.isoformat() if day else None,
        date_end=end.isoformat() if end else None,
        facility=head.facility,
        clinician=head.clinician,
        patient_name=head.name,
        patient_birth_date=head.born,
        patient_identifier=head.number,
        rule="continues"
        if found_facts.from_before and started_before
        else f"split.{found_facts.rule}",
    )


def _spans(lines: Sequence[_Line]) -> Iterator[LineSpan]:
    """Yield runs of lines, including blank lines between two lines of a page."""
    kept = [line for line in lines if line.text.strip()]
    run: list[_Line] = []
    given = {(line.page, line.number) for line in lines}
    for line in kept:
        joined = run and run[-1].page == line.page
        if joined and all((line.page, n) in given for n in range(run[-1].number, line.number)):
            run.append(line)
            continue
        if run:
            yield LineSpan(page=run[0].page, first_line=run[0].number, last_line=run[-1].number)
        run = [line]
    if run:
        yield LineSpan(page=run[0].page, first_line=run[0].number, last_line=run[-1].number)
