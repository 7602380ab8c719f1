"""A book of typeset pages that remembers the encounter of each printed line.

The same lines make the PDF and its truth, so both always agree. PDFs are byte-identical on every
run.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from reportlab.lib.pagesizes import letter
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen import canvas

from samples import truth
from samples.markup import MarkedRun, Mention, read, tokens

WIDTH, HEIGHT = letter
TOP, BOTTOM = HEIGHT - 66, 62.0


@dataclass(frozen=True)
class Style:
    """The print style of a facility: typeface, size in points, kind of headings."""

    font: str = "Helvetica"
    bold: str = "Helvetica-Bold"
    size: float = 10.0
    leading: float = 13.6
    heading: str = "rule"
    left: float = 56.0
    right: float = WIDTH - 56.0


SANS = Style()
SERIF = Style("Times-Roman", "Times-Bold", 11.0, 14.2, "caps", 64.0, WIDTH - 60.0)
TYPED = Style("Courier", "Courier-Bold", 9.4, 12.8, "plain", 50.0, WIDTH - 46.0)
BARRED = Style("Helvetica", "Helvetica-Bold", 9.6, 13.4, "bar", 48.0, WIDTH - 48.0)


@dataclass
class EncounterLayout:
    """An encounter under construction."""

    index: int
    type: str
    facility: str
    date_start: dt.date
    date_end: dt.date | None
    patient_mismatch: bool = False
    nkda: bool = False


@dataclass
class Segment:
    """A string and its position on a line."""

    x: float
    text: str
    font: str
    size: float


@dataclass
class LineLayout:
    """One printed line; `encounter` is None for running headers and unassigned text."""

    y: float
    segments: list[Segment]
    encounter: EncounterLayout | None
    mentions: list[Mention] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The line as in a text layer."""
        return " ".join(segment.text for segment in self.segments)


@dataclass
class Sheet:
    """One page: its lines, its rules and bars, its running header and footer."""

    lines: list[LineLayout] = field(default_factory=list)
    shapes: list[tuple[str, float, float, float, float]] = field(default_factory=list)
    running: str = ""
    footer: str = ""
    blank: bool = False
    unsupported: bool = False


class Book:
    """A record under construction: call its methods from top to bottom, then `pdf` and `record`."""

    def __init__(self, patient: truth.PatientTruth, style: Style = SANS) -> None:
        self.patient = patient
        self.style = style
        self.sheets: list[Sheet] = []
        self.encounters: list[EncounterLayout] = []
        self.running = ""
        self.footer = ""
        self._current: EncounterLayout | None = None
        self._y = 0.0

    @property
    def page(self) -> int:
        """The number of the current page; 0 before the first page."""
        return len(self.sheets)

    @property
    def room(self) -> float:
        """Points left on the page."""
        return self._y - BOTTOM

    def new_page(self, *, blank: bool = False, unsupported: bool = False) -> None:
        """Start a page with the current running header and footer."""
        sheet = Sheet(running=self.running, footer=self.footer, blank=blank)
        sheet.unsupported = unsupported
        if blank:
            sheet.running = sheet.footer = ""
        self.sheets.append(sheet)
        self._y = TOP

    def begin(
        self,
        type_: str,
        facility: str,
        start: dt.date,
        end: dt.date | None = None,
        *,
        style: Style | None = None,
        mismatch: bool = False,
    ) -> EncounterLayout:
        """Open the next encounter; all following lines belong to it."""
        encounter = EncounterLayout(len(self.encounters), type_, facility, start, end, mismatch)
        self.encounters.append(encounter)
        self._current = encounter
        self.style = style or self.style
        return encounter

    def unassigned(self) -> None:
        """Close the encounter; the following lines belong to no encounter."""
        self._current = None

    def nkda(self) -> None:
        """Note that the encounter states no known drug allergies."""
        if self._current is None:
            raise ValueError("no encounter is open")
        self._current.nkda = True

    def gap(self, points: float = 6.0) -> None:
        """Leave vertical space."""
        self._y -= points

    def put(
        self,
        segments: list[Segment],
        mentions: Sequence[Mention] = (),
        leading: float | None = None,
    ) -> None:
        """Print one line, on a new page if the current page is full."""
        step = leading or self.style.leading
        if not self.sheets or self._y - step < BOTTOM:
            self.new_page()
        self._y -= step
        line = LineLayout(self._y, segments, self._current, list(mentions))
        if line.text.endswith("-"):
            raise ValueError(f"a hyphen at the end of a line is lost by readers: {line.text}")
        self.sheets[-1].lines.append(line)

    def rule(self) -> None:
        """Draw a thin rule under the last line."""
        self._y -= 4
        self.sheets[-1].shapes.append(("rule", self.style.left, self._y, self.style.right, 0.6))

    def _plain(self, text: str, *, bold: bool = False, size: float | None = None) -> Segment:
        font = self.style.bold if bold else self.style.font
        return Segment(self.style.left, text, font, size or self.style.size)

    def centred(self, text: str, *, size: float | None = None, bold: bool = True) -> None:
        """Print one centred line."""
        segment = self._plain(text, bold=bold, size=size)
        segment.x = (WIDTH - stringWidth(text, segment.font, segment.size)) / 2
        self.put([segment], leading=segment.size * 1.3)

    def letterhead(self, name: str, *address: str, left: bool = False) -> None:
        """Print the facility's name and address over a rule."""
        if left:
            self.put([self._plain(name, bold=True, size=14)], leading=18)
            for text in address:
                self.put([self._plain(text, size=8.5)], leading=10.5)
        else:
            self.centred(name, size=14)
            for text in address:
                self.centred(text, size=8.5, bold=False)
        self.rule()
        self.gap(4)

    def title(self, text: str) -> None:
        """Print the kind of note."""
        self.gap(3)
        self.put([self._plain(text, bold=True, size=self.style.size + 2)], leading=17)
        self.gap(2)

    def heading(self, text: str) -> None:
        """Print a section heading, never as the last line of a page."""
        if self.room < self.style.leading * 5 + 8:
            self.new_page()
        self.gap(7)
        segment = self._plain(text, bold=self.style.heading != "plain")
        if self.style.heading == "bar":
            low = self._y - self.style.leading - 3
            box = ("bar", self.style.left - 3, low, self.style.right + 3, self.style.leading + 1)
            self.sheets[-1].shapes.append(box)
        self.put([segment])
        if self.style.heading == "rule":
            self.rule()
        self.gap(2)

    def fields(self, *pairs: tuple[str, str], columns: int = 2) -> None:
        """Print labelled fields, `columns` to a line; an empty label prints the value only."""
        step = (self.style.right - self.style.left) / columns
        for at in range(0, len(pairs), columns):
            segments: list[Segment] = []
            found: list[Mention] = []
            for column, (label, value) in enumerate(pairs[at : at + columns]):
                x = self.style.left + column * step
                text, mentions = read(value)
                if label:
                    segments.append(Segment(x, label, self.style.bold, self.style.size))
                    x += stringWidth(label + " ", self.style.bold, self.style.size)
                segments.append(Segment(x, text, self.style.font, self.style.size))
                found += mentions
            self.put(segments, found)

    def para(self, text: str, *, indent: float = 0.0, mark: str = "") -> None:
        """Print a marked-up paragraph, wrapped; `mark` is printed in the indent."""
        left = self.style.left + indent
        if mark:
            left += stringWidth(mark + " ", self.style.font, self.style.size)
        for words in self._wrap(tokens(text), self.style.right - left):
            printed = " ".join("".join(piece.text for piece in word) for word in words)
            segments = [Segment(left, printed, self.style.font, self.style.size)]
            if mark:
                hung = Segment(self.style.left + indent, mark, self.style.font, self.style.size)
                segments.insert(0, hung)
                mark = ""
            self.put(segments, [p.mention for word in words for p in word if p.mention])
        self.gap(3)

    def _wrap(self, words: list[list[MarkedRun]], width: float) -> Iterable[list[list[MarkedRun]]]:
        line: list[list[MarkedRun]] = []
        used = 0.0
        for word in words:
            need = stringWidth(
                "".join(p.text for p in word) + " ", self.style.font, self.style.size
            )
            if line and used + need > width:
                yield line
                line, used = [], 0.0
            line.append(word)
            used += need
        if line:
            yield line

    def items(self, *texts: str, mark: str = "•", indent: float = 8.0) -> None:
        """Print a list; `mark` "1." numbers it."""
        for number, text in enumerate(texts, 1):
            self.para(text, indent=indent, mark=f"{number}." if mark == "1." else mark)
            self.gap(-2)
        self.gap(3)

    def row(
        self,
        cells: Sequence[str],
        widths: Sequence[float],
        *,
        bold: bool = False,
        mentions: Sequence[Mention] = (),
    ) -> None:
        """Print one table row. `widths` are shares of the measure; empty cells print nothing."""
        measure = self.style.right - self.style.left
        font = self.style.bold if bold else self.style.font
        x = self.style.left
        segments: list[Segment] = []
        found = list(mentions)
        for cell, share in zip(cells, widths, strict=True):
            text, marked = read(cell)
            found += marked
            if text:
                segments.append(Segment(x, text, font, self.style.size - 0.4))
                if stringWidth(text, font, self.style.size - 0.4) > share * measure - 3:
                    raise ValueError(f"cell too narrow for {text!r}")
            x += share * measure
        self.put(segments, found)

    def table(
        self, head: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[float]
    ) -> None:
        """Print a table that may cross the end of the page without repeating its head."""
        if self.room < self.style.leading * 3:
            self.new_page()
        self.row(head, widths, bold=True)
        self.rule()
        for cells in rows:
            self.row(cells, widths)
        self.gap(4)

    def fill(self, last_page: int, blocks: Iterable[Callable[[], None]]) -> None:
        """Print `blocks` until `last_page` is full; undo the block that does not fit."""
        for block in blocks:
            sheets, y = len(self.sheets), self._y
            lines, shapes = len(self.sheets[-1].lines), len(self.sheets[-1].shapes)
            block()
            if self.page > last_page:
                del self.sheets[sheets:]
                del self.sheets[-1].lines[lines:], self.sheets[-1].shapes[shapes:]
                self._y = y
                return
        raise ValueError(f"too few blocks to reach page {last_page}")

    def pdf(self) -> bytes:
        """Draw the book."""
        out = io.BytesIO()
        pen = canvas.Canvas(out, pagesize=letter, invariant=1, pageCompression=1)
        pen.setTitle("Sample record")
        pen.setAuthor("medproc samples")
        total = len(self.sheets)
        for number, sheet in enumerate(self.sheets, 1):
            _furniture(pen, sheet.running, HEIGHT - 44, number, total)
            for kind, x, y, right, weight in sheet.shapes:
                if kind == "bar":
                    pen.setFillGray(0.88)
                    pen.rect(x, y, right - x, weight, stroke=0, fill=1)
                    pen.setFillGray(0)
                else:
                    pen.setLineWidth(weight)
                    pen.line(x, y, right, y)
            for line in sheet.lines:
                for segment in line.segments:
                    pen.setFont(segment.font, segment.size)
                    pen.drawString(segment.x, line.y, segment.text)
            _furniture(pen, sheet.footer, 36, number, total)
            pen.showPage()
        pen.save()
        return out.getvalue()

    def record(self, file: str) -> truth.Record:
        """Return the truth of the drawn book."""
        assigned = {n for e in self.encounters for n in self._pages(e)}
        numbered = list(enumerate(self.sheets, 1))
        blank = [n for n, sheet in numbered if sheet.blank]
        unsupported = [n for n, sheet in numbered if sheet.unsupported]
        return truth.Record(
            file=file,
            pages=len(self.sheets),
            text_layer=True,
            patient=self.patient,
            encounters=[self._encounter(e) for e in self.encounters],
            unassigned_pages=[n for n, _ in numbered if n not in {*assigned, *blank, *unsupported}],
            blank_pages=blank,
            unsupported_language_pages=unsupported,
            rotated_pages={},
            page_texts=None,
        )

    def _pages(self, encounter: EncounterLayout) -> list[int]:
        return [
            number
            for number, sheet in enumerate(self.sheets, 1)
            if any(line.encounter is encounter for line in sheet.lines)
        ]

    def _encounter(self, encounter: EncounterLayout) -> truth.EncounterTruth:
        spans, entities = [], []
        for number in self._pages(encounter):
            lines = [x for x in self.sheets[number - 1].lines if x.encounter is encounter]
            spans.append(
                {
                    "page": number,
                    "first_line_text": lines[0].text,
                    "last_line_text": lines[-1].text,
                }
            )
            entities += [
                {
                    "category": m.category,
                    "quote": m.quote,
                    "page": number,
                    "line": line.text,
                    "name": m.name,
                    "assertion": m.assertion,
                    **m.attributes,
                }
                for line in lines
                for m in line.mentions
            ]
        return truth.EncounterTruth.model_validate(
            {
                "index": encounter.index,
                "type": encounter.type,
                "facility": encounter.facility,
                "date_start": encounter.date_start,
                "date_end": encounter.date_end,
                "pages": [span["page"] for span in spans],
                "spans": spans,
                "patient_mismatch": encounter.patient_mismatch,
                "nkda": encounter.nkda,
                "entities": entities,
            }
        )


def _furniture(pen: canvas.Canvas, text: str, y: float, page: int, total: int) -> None:
    if text:
        pen.setFont("Helvetica", 8)
        pen.drawString(54, y, text.format(page=page, total=total))
