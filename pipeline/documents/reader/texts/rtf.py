"""RTF files: their visible text as paragraphs and tables.

Deleted text is left out, struck text is marked, and hidden text is left out with a warning.
"""

from __future__ import annotations

import codecs
from dataclasses import replace
from itertools import pairwise

from .. import refusals
from ..contrast import is_unseen
from ..types import HIDDEN_TEXT, PARTLY_READ, TRACKED_CHANGES
from .blocks import Block, Paragraph, Run
from .lines import PageBreak, Warned
from .rtf_actions import ACTIONS
from .rtf_tables import RowLook, RtfTable
from .rtf_tokens import RtfToken, tokens_of
from .rtf_words import (
    CHECK_BOX,
    CODE_PAGES,
    DEEPEST,
    DESTINATIONS,
    FLOWS,
    HEADERS,
    LEAST_PICTURE,
    MUTE,
    NO_STATE,
    PAGE_TWIPS,
    PICTURE_SIZE,
    PROPERTY,
    READ,
    SAME,
    SETS,
    SIGNS,
    SKIPPED,
    SYMBOLS,
    RtfLook,
)
from .running_lines import PAGE_COUNT, PAGE_NUMBER, framed
from .symbol_fonts import in_unicode, is_symbol
from .unseen_limits import LEAST_TWIPS, LETTER, MARGIN


class RtfReader:
    """Reads the tokens of one file."""

    def __init__(self) -> None:
        self.look: RtfLook = RtfLook()
        self.groups: list[RtfLook] = []
        self.default = "cp1252"
        self.fonts: dict[int, tuple[str, str]] = {}
        self.colours: list[str] = []
        self.blocks: list[Block] = []
        self.notes: list[Block] = []
        #: The running headers and footers, by their control words.
        self.frames: dict[str, list[Block]] = {}
        self.has_first_page = False
        self.default_font = 0
        self.instruction = ""
        #: The style that the open sheet defines: its control word and number.
        self.style: tuple[str, int] = ("s", 0)
        self.hidden_styles: set[tuple[str, int]] = set()
        #: Type, state and entries of the form field in the open instruction.
        self.form: dict[str, int] = {}
        self.entries: list[int] = []
        #: Edges of the open shape in twips, and whether it is hidden.
        self.shape: dict[str, int] = {}
        self._property = ""
        self._opened = 0
        self._outer_row = RowLook()
        self.tables: list[RtfTable] = []
        self.row: RowLook = RowLook()
        self.paragraph = Paragraph()
        self._bytes = bytearray()
        self._to_skip = 0
        self._high = 0
        self._is_starred = self._is_first = False
        self._font = -1
        self._name = ""
        self._colour: dict[bytes, int] = {}
        self._picture: dict[bytes, int] = {}
        self._outer: list[tuple[list[Block], Paragraph, list[RtfTable]]] = []

    def run(self, raw: bytes) -> None:
        """Read all tokens. Raises InputRefused."""
        ended = False
        for token in tokens_of(raw):
            if ended:
                if token.raw.strip(b"\0 \t\r\n\x1a"):
                    raise refusals.broken_document("RTF")
                continue
            if token.kind not in {"hex", "text"}:
                self._decode()
            self._take(token)
            ended = not self.groups
        if self.groups or not ended:
            raise refusals.broken_document("RTF")
        self.end_paragraph()
        self._leave_tables(0)

    def _take(self, token: RtfToken) -> None:
        first, self._is_first = self._is_first, False
        if token.kind == "open":
            if len(self.groups) >= DEEPEST:
                raise refusals.too_deep("RTF")
            self.groups.append(self.look)
            self._is_first = True
            self._is_starred = False
            self._to_skip = 0
        elif token.kind == "close":
            self._close()
        elif token.kind == "word":
            self._word(token.raw, token.number, first)
        elif token.kind == "symbol":
            self._symbol(token.raw, first)
        elif token.kind == "hex":
            if self._to_skip:
                self._to_skip -= 1
            else:
                self._bytes += bytes.fromhex(token.raw.decode())
        else:
            skipped = min(self._to_skip, len(token.raw))
            self._to_skip -= skipped
            self._bytes += token.raw[skipped:]
            self._decode()

    def _close(self) -> None:
        look, before = self.look, self.groups.pop()
        self._to_skip = 0
        if look.opened != before.opened:
            self._end_destination(look.destination)
        self.look = before

    def _symbol(self, raw: bytes, first: bool) -> None:
        if raw == b"*":
            self._is_starred = first
            self._is_first = first
        elif raw in {b"\n", b"\r"}:
            self.end_paragraph()
        elif raw in SYMBOLS:
            if self._to_skip:
                self._to_skip -= 1
            else:
                self._put(SYMBOLS[raw])

    def _word(self, word: bytes, number: int | None, first: bool) -> None:
        if first and self._begins(word):
            return
        if self.look.destination in {"skip", "picture"}:
            if self.look.destination == "picture" and word in PICTURE_SIZE and number:
                self._picture[word] = number
            return
        if word == b"u" and number is not None:
            self._unicode(number)
        elif word in SIGNS:
            if self._to_skip:
                self._to_skip -= 1
            else:
                self._put(SIGNS[word])
        elif word in ACTIONS:
            ACTIONS[word](self, number)
        elif word in SETS:
            self.default = SETS[word]

    def _begins(self, word: bytes) -> bool:
        """Begin a destination; return whether the word is one."""
        starred, self._is_starred = self._is_starred, False
        kind = ""
        if self.look.destination in {"skip", "picture", "fldinst", "stylesheet"}:
            return False
        if self.look.destination in {"fonttbl", "colortbl"}:
            kind = "skip" if starred or word == b"falt" else ""
        elif word in PROPERTY and self.look.destination == "sp":
            kind = word.decode()
        elif SAME.get(word, word) in DESTINATIONS or word in HEADERS:
            kind = SAME.get(word, word).decode()
        elif word == b"shpinst":
            self.shape = {}
        elif word == b"ud":
            self.look = replace(self.look, destination="")
        elif word == b"nesttableprops":
            self._outer_row = self.row
        elif word == b"fldrslt" and (self.form.get("type") or self._is_page_field()):
            self.form = {}
            kind = "skip"
        elif word == b"annotation":
            self.add(Warned(name=PARTLY_READ))
            kind = "skip"
        elif word == b"pict":
            self._picture = {}
            kind = "picture"
        elif word in SKIPPED or (starred and word not in READ):
            kind = "skip"
        elif word in {b"listtext", b"pntext"}:
            kind = "marker"
        if not kind:
            return starred
        self._begin_destination(kind)
        return True

    def _begin_destination(self, kind: str) -> None:
        if kind == "fldinst":
            self.instruction = ""
            self.form, self.entries = {}, []
        if kind == "sn":
            self._property = ""
        if kind in FLOWS:
            if len(self._outer) > 8:
                raise refusals.too_deep("RTF")
            self._outer.append((self.blocks, self.paragraph, self.tables))
            self.blocks, self.paragraph, self.tables = [], Paragraph(), []
            is_frame = self.look.is_frame or kind.encode() in HEADERS
            is_unseen = self.look.is_in_unseen_shape or self.look.is_hidden
            is_unseen = is_unseen or (kind == "shptxt" and self._is_unseen_shape())
            self.look = replace(
                self.look,
                in_table=False,
                depth=1,
                is_frame=is_frame,
                is_in_unseen_shape=self.look.is_in_unseen_shape or is_unseen,
            )
        self._opened += 1
        self.look = replace(self.look, destination=kind, opened=self._opened)

    def _end_destination(self, kind: str) -> None:
        if kind == "picture":
            size = self._picture.get(b"picwgoal", 0) * self._picture.get(b"pichgoal", 0)
            self._picture = {}
            share = size / PAGE_TWIPS
            if share >= LEAST_PICTURE:
                self.add(Warned(name=PARTLY_READ, unread_share=min(1.0, share)))
        if kind == "fldinst":
            self._put_form_field()
        if kind not in FLOWS:
            return
        self.end_paragraph()
        self._leave_tables(0)
        found = self.blocks
        self.blocks, self.paragraph, self.tables = self._outer.pop()
        if kind.encode() in HEADERS:
            self.frames[kind] = found
            self.add_frame()
        elif kind == "footnote":
            self.notes += found
        elif kind == "shptxt":
            self.end_paragraph(only_full=True)
            for block in found:
                self.add(block)

    def _put_form_field(self) -> None:
        """Put what the form field of an instruction shows: a check box, or the chosen entry."""
        if not self.form.get("type"):
            return
        state = self.form.get("state", NO_STATE)
        state = self.form.get("default", 0) if state == NO_STATE else state
        if self.form["type"] == CHECK_BOX:
            shown = "[x]" if state else "[ ]"
        else:
            found = [self.instruction[a:b] for a, b in pairwise([*self.entries, None])]
            shown = found[state].strip() if state < len(found) else ""
        if not shown:
            return
        if self.look.is_deleted or self._is_unseen():
            self.add_warning(TRACKED_CHANGES if self.look.is_deleted else HIDDEN_TEXT)
        else:
            self.paragraph.runs.append(Run(text=shown, struck=self.look.struck))

    # Text

    def _unicode(self, number: int) -> None:
        code = number + 65_536 if number < 0 else number
        self._to_skip = self.look.skips_unicode
        if 0xD800 <= code < 0xDC00:
            self._high = code
            return
        if 0xDC00 <= code < 0xE000:
            code = (
                0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00) if self._high else 0xFFFD
            )
        self._high = 0
        self._put(chr(code) if 0 < code < 0x110000 else "\ufffd")

    def _decode(self) -> None:
        """Decode the collected bytes in the code page of the font."""
        if not self._bytes:
            return
        raw, self._bytes = bytes(self._bytes), bytearray()
        _, page = self.fonts.get(self.look.font, ("", ""))
        if page == "symbol":
            page = "latin-1"
        try:
            self._put(raw.decode(page or self.default, "replace"))
        except LookupError:
            raise refusals.broken_document("RTF") from None

    def _put(self, text: str) -> None:
        look = self.look
        if look.destination == "fonttbl":
            self._name += text
            if ";" in text:
                self.set_font_name()
            return
        if look.destination == "colortbl":
            for _ in range(text.count(";")):
                parts = (self._colour.get(part) for part in (b"red", b"green", b"blue"))
                numbers = [part for part in parts if part is not None]
                self.colours.append("".join(f"{n & 255:02X}" for n in numbers) if numbers else "")
                self._colour = {}
            return
        if look.destination == "fldinst":
            self.instruction += text
        if look.destination == "stylesheet" and look.is_hidden:
            self.hidden_styles.add(self.style)
        if look.destination == "sn":
            self._property += text
        elif look.destination == "sv" and self._property.strip() == "fHidden":
            self.shape["hidden"] = int(text.strip() == "1")
        if look.destination in MUTE:
            return
        if look.is_deleted:
            if text.strip():
                self.add_warning(TRACKED_CHANGES)
            return
        if self._is_unseen():
            if text.strip():
                self.add_warning(HIDDEN_TEXT)
            return
        name, page = self.fonts.get(look.font, ("", ""))
        if page == "symbol" or is_symbol(name):
            text = in_unicode(text, name or "Symbol")
        if look.destination == "marker":
            self.paragraph.marker += text.replace("\t", " ").strip()
            return
        self.paragraph.runs.append(Run(text=text, struck=look.struck, shift=look.shift))

    def _is_unseen(self) -> bool:
        look = self.look
        if look.has_hidden_paragraph or look.has_hidden_letters:
            return True
        if look.is_hidden or look.is_squeezed or look.half_points < 4:
            return True
        if look.is_clipped or look.is_aside or look.is_in_unseen_shape:
            return True
        ground = self._rgb(look.marked) or self._rgb(look.ground) or self._cell_ground()
        return is_unseen(self._rgb(look.colour), ground)

    def _cell_ground(self) -> str:
        """Return the ground of the open cell; empty for paper, and if no row was defined yet."""
        if not self.look.in_table or self.look.depth > 1:
            return ""
        number = self.tables[0].cell_number if self.tables else 0
        grounds = self.row.grounds
        return self._rgb(grounds[number]) if number < len(grounds) else ""

    def _is_unseen_shape(self) -> bool:
        """Return whether the open shape is hidden, has no size, or lies beside the page."""
        of = self.shape
        if of.get("hidden"):
            return True
        for first, last, most in (("left", "right", LETTER[0]), ("top", "bottom", LETTER[1])):
            if first in of and last in of:
                at, end = sorted((of[first], of[last]))
                if end - at < LEAST_TWIPS or at >= most or end <= -MARGIN:
                    return True
        return False

    def _rgb(self, number: int) -> str:
        return self.colours[number] if 0 < number < len(self.colours) else ""

    def set_font_name(self) -> None:
        """Store the name of the font that the table defines."""
        _, page = self.fonts.get(self._font, ("", ""))
        self.fonts[self._font] = (self._name.split(";")[0].strip(), page)
        self._name = ""

    def set_font(self, number: int | None) -> None:
        """Choose a font, or begin its definition."""
        if self.look.destination == "fonttbl":
            self._font, self._name = number or 0, ""
            self.fonts.setdefault(self._font, ("", ""))
        else:
            self.look = replace(self.look, font=number or 0)

    def set_charset(self, number: int | None) -> None:
        """Store the code page of the font that the table defines."""
        name, _ = self.fonts.get(self._font, ("", ""))
        self.fonts[self._font] = (name, CODE_PAGES.get(number or 0, "unknown"))

    def set_code_page(self, number: int | None) -> None:
        """Store the code page of the file."""
        page = "utf-8" if number == 65_001 else f"cp{number}"
        try:
            codecs.lookup(page)
        except LookupError:
            raise refusals.not_text("The RTF file has an unknown code page") from None
        self.default = page

    def set_colour_part(self, part: bytes, number: int | None) -> None:
        """Store red, green or blue of the colour that the table defines."""
        if self.look.destination == "colortbl":
            self._colour[part] = number or 0

    # Paragraphs and tables

    def add(self, block: Block) -> None:
        """Add a block to the open cell, or to the text."""
        if self.tables:
            self.tables[-1].open.append(block)
        else:
            self.blocks.append(block)

    def add_warning(self, name: str) -> None:
        """Add a warning for the page."""
        self.add(Warned(name=name))

    def end_paragraph(self, *, only_full: bool = False) -> None:
        """End the paragraph; an empty paragraph is an empty line."""
        if self.look.destination in MUTE:
            return
        self._leave_tables(self.look.depth if self.look.in_table else 0)
        paragraph, self.paragraph = self.paragraph, Paragraph()
        if paragraph.runs or paragraph.marker or not only_full:
            self.add(paragraph)

    def add_frame(self) -> None:
        """Let the running headers and footers begin here."""
        if not self._outer and not self.tables:
            self.blocks.append(framed(dict(self.frames), has_first_page=self.has_first_page))

    def _is_page_field(self) -> bool:
        """Return whether a field is a number of pages; put a sign for the number."""
        field = self.instruction.split()[:1]
        sign = {"PAGE": PAGE_NUMBER, "NUMPAGES": PAGE_COUNT}.get(field[0].upper() if field else "")
        if sign is None or not self.look.is_frame:
            return False
        self.paragraph.runs.append(Run(text=sign))
        return True

    def end_page(self, _: int | None = None) -> None:
        """End the page, outside of tables."""
        self.end_paragraph(only_full=True)
        if not self.tables:
            self.blocks += [*self.notes, PageBreak()]
            self.notes = []

    def _leave_tables(self, depth: int) -> None:
        while len(self.tables) > max(0, depth):
            table = self.tables.pop().table()
            self.add(table)
        while len(self.tables) < depth:
            if depth > 16:
                raise refusals.too_deep("RTF")
            self.tables.append(RtfTable())

    def end_cell(self, depth: int) -> None:
        """End a cell of the table at `depth`."""
        self.look = replace(self.look, in_table=True)
        self._leave_tables(depth)
        paragraph, self.paragraph = self.paragraph, Paragraph()
        if paragraph.runs or paragraph.marker:
            self.add(paragraph)
        self.tables[-1].end_cell()

    def end_row(self, depth: int) -> None:
        """End a row of the table at `depth`."""
        self._leave_tables(depth)
        self.tables[-1].end_row(self.row)
        if depth > 1:
            self.row = self._outer_row


def read_rtf(raw: bytes) -> list[Block]:
    """Return the text of an RTF file. Raises InputRefused."""
    rtf = RtfReader()
    rtf.run(raw)
    blocks = [*rtf.blocks, *rtf.notes]
    while blocks and isinstance(blocks[-1], PageBreak):
        blocks.pop()
    return blocks
