"""The text of DOCX paragraphs: runs, fields, notes, and what lies between them.

Deleted text is left out, struck text is marked, and hidden text is left out with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ..raised import superscript
from ..types import ATTACHMENTS, HIDDEN_TEXT, PARTLY_READ, TRACKED_CHANGES
from .blocks import Block, Paragraph, Run
from .docx_hidden import Page, is_unseen_drawing, is_unseen_shape
from .docx_styles import (
    NO_LOOK,
    PAPER,
    DocxLook,
    DocxStyles,
    Grounds,
    is_on,
    look_of,
    value,
)
from .docx_theme import DocxTheme, vml_fill_of
from .lines import PageBreak, Warned
from .running_lines import PAGE_COUNT, PAGE_NUMBER
from .symbol_fonts import in_unicode, is_symbol
from .unseen_limits import LETTER
from .xml_tree import REQUIRES

#: A letter page in square EMU (914,400 to the inch), and in square points.
_PAGE_EMU, _PAGE_POINTS = 8.5 * 11 * 914_400**2, 612.0 * 792.0
LEAST_PICTURE = 0.01
_KNOWN = (
    "http://schemas.microsoft.com/office/",
    "http://schemas.openxmlformats.org/",
    "urn:schemas-",
)
_WRAPPERS = frozenset(
    [
        "w.hyperlink",
        "w.smartTag",
        "w.sdtContent",
        "w.customXml",
        "w.dir",
        "w.bdo",
        "w.fldSimple",
        "w.ins",
        "w.moveTo",
    ]
)
#: What a run can hold besides letters.
_HOLDERS = frozenset(
    ["w.footnoteReference", "w.endnoteReference", "w.drawing", "w.pict", "w.object"]
)
_SIGNS_OF_BOX = {**dict.fromkeys("☐□", False), **dict.fromkeys("☒☑✓✔✗✘", True)}
_SIGNS = {"w.tab": "\t", "w.ptab": "\t", "w.cr": "\n", "w.noBreakHyphen": "-"}
_SIZE = re.compile(r"(width|height):\s*([\d.]+)(pt|in|px)?")
_POINTS = {"pt": 1.0, "in": 72.0, "px": 0.75, None: 1.0}


@dataclass(kw_only=True)
class _Field:
    instruction: str = ""
    has_result: bool = False
    is_replaced: bool = False


@dataclass(kw_only=True)
class Flow:
    """The state of a text while its paragraphs are read: open fields, notes, the paragraph."""

    is_frame: bool = False
    #: Whether the place of the paragraph shows nothing.
    is_unseen: bool = False
    #: The look that the style of the table gives to its cells.
    base: DocxLook = NO_LOOK
    fields: list[_Field] = field(default_factory=list)
    #: Notes whose text is due at the end of the page.
    notes: list[Block] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    #: Blocks that the open paragraph has finished: parts of it, page ends, warnings.
    before: list[Block] = field(default_factory=list)
    #: Blocks that follow the open paragraph: text boxes.
    after: list[Block] = field(default_factory=list)

    def warn(self, name: str, share: float = 0.0) -> None:
        """Add a warning for the page."""
        self.before.append(Warned(name=name, unread_share=share))

    def has_shown(self) -> bool:
        """Return whether a text that is not shown is the result of an inner or replaced field."""
        return self.fields[-1].has_result

    def shows(self) -> bool:
        """Return whether the text of a run is on the page, not a part of a field's code."""
        return all(each.has_result and not each.is_replaced for each in self.fields)


class RunReader:
    """Reads runs into a flow."""

    def __init__(
        self,
        styles: DocxStyles,
        notes: Callable[[str, str], Iterable[Block]],
        boxes: Callable[[Element, Flow, Grounds], Iterable[Block]],
        theme: DocxTheme,
    ) -> None:
        self._styles = styles
        self._notes = notes
        self._boxes = boxes
        self._theme = theme
        self._count = 0
        #: Texts (`w:t`) that were read or that a warning accounts for.
        self.taken = 0
        self.page: Page = LETTER

    def account(self, skipped: Element) -> int:
        """Count the texts of an element that a warning accounts for; return their number."""
        number = texts_in(skipped)
        self.taken += number
        return number

    def read(self, parent: Element, flow: Flow, base: DocxLook, ground: Grounds) -> None:
        """Read the children of a paragraph or of an element around runs."""
        for each in children(parent):
            tag = each.tag
            if tag == "w.r":
                self._run(each, flow, base, ground)
            elif tag in {"w.del", "w.moveFrom"}:
                if (
                    any(text.text for text in each.iter("w.delText"))
                    or each.find(".//w.t") is not None
                ):
                    flow.warn(TRACKED_CHANGES)
                self.account(each)
            elif tag == "w.subDoc":
                flow.warn(ATTACHMENTS)
            elif tag == "w.sdt":
                self._control(each, flow, base, ground)
            elif tag in _WRAPPERS:
                if tag in {"w.ins", "w.moveTo"} and each.find(".//w.t") is not None:
                    flow.warn(TRACKED_CHANGES)
                if tag == "w.fldSimple" and self._number_of(each.get("w.instr", ""), flow):
                    self.account(each)
                else:
                    self.read(each, flow, base, ground)
            elif tag in {"m.oMath", "m.oMathPara"}:
                self._formula(each, flow)

    def _control(self, each: Element, flow: Flow, base: DocxLook, ground: Grounds) -> None:
        box = each.find("w.sdtPr/w14.checkbox/w14.checked")
        content = each.find("w.sdtContent")
        if box is None:
            if content is not None:
                self.read(content, flow, base, ground)
            return
        before = len(flow.runs)
        if content is not None:
            self.read(content, flow, base, ground)
        shown = "".join(run.text for run in flow.runs[before:]).strip()
        del flow.runs[before:]
        if shown or content is None or not texts_in(content):
            # The sign on the page counts, whatever the state of the control says.
            ticked = is_on(box.get("w14.val", "1"))
            ticked = _SIGNS_OF_BOX.get(shown, ticked)
            flow.runs.append(Run(text="[x]" if ticked else "[ ]"))

    def _run(self, run: Element, flow: Flow, base: DocxLook, ground: Grounds) -> None:
        properties = run.find("w.rPr")
        own = look_of(properties)
        style = value(properties.find("w.rStyle")) if properties is not None else ""
        inner = own.over(self._styles.look(style or self._styles.default_character)).over(base)
        look = inner.over(flow.base).over(self._styles.default)
        for each in children(run):
            if each.tag in {"w.t", "w.sym", "w.delText", *_SIGNS}:
                self._text(each, flow, look, ground)
            elif each.tag == "w.br":
                self._break(each, flow)
            elif each.tag in {"w.fldChar", "w.instrText"}:
                self._field(each, flow, is_seen=not (flow.is_unseen or look.is_unseen(ground)))
            elif each.tag in _HOLDERS and (flow.is_unseen or look.is_hidden):
                self.account(each)
                flow.warn(HIDDEN_TEXT)
            elif each.tag in {"w.footnoteReference", "w.endnoteReference"}:
                self._note(each, flow)
            elif each.tag in {"w.drawing", "w.pict", "w.object"}:
                self._drawing(each, flow)
            elif each.tag == "w.commentReference":
                flow.warn(PARTLY_READ)
            elif each.tag == "w.ruby":
                for part in each.findall("w.rt"):
                    self.account(part)
                for part in each.findall("w.rubyBase"):
                    self.read(part, flow, base, ground)

    def _text(self, each: Element, flow: Flow, look: DocxLook, ground: Grounds) -> None:
        text = _SIGNS.get(each.tag) or each.text or ""
        font = look.font or ""
        if each.tag == "w.sym":
            font, code = each.get("w.font", ""), each.get("w.char", "")
            try:
                text = chr(int(code, 16))
            except ValueError:
                text = "\ufffd"
        if each.tag == "w.delText":
            return
        if not flow.shows():
            if flow.has_shown():
                self._took(each)
            return
        self._took(each)
        if flow.is_unseen or look.is_unseen(ground):
            if text.strip():
                flow.warn(HIDDEN_TEXT)
            return
        if is_symbol(font):
            text = in_unicode(text, font)
        flow.runs.append(Run(text=text, struck=bool(look.struck), shift=look.shift or 0))

    def _took(self, each: Element) -> None:
        self.taken += each.tag == "w.t" and bool((each.text or "").strip())

    def _break(self, each: Element, flow: Flow) -> None:
        if each.get("w.type") != "page":
            flow.runs.append(Run(text="\n"))
        elif not flow.is_frame:
            flow.before += [Paragraph(runs=flow.runs), *flow.after, *flow.notes, PageBreak()]
            flow.runs, flow.after, flow.notes = [], [], []

    def _field(self, each: Element, flow: Flow, *, is_seen: bool) -> None:
        if each.tag == "w.instrText":
            if flow.fields and not flow.fields[-1].has_result:
                flow.fields[-1].instruction += each.text or ""
            return
        kind = each.get("w.fldCharType")
        if kind == "begin":
            shown = _form_field(each) if flow.shows() else []
            if is_seen:
                flow.runs += shown
            elif shown:
                flow.warn(HIDDEN_TEXT)
            flow.fields.append(_Field())
        elif kind == "separate" and flow.fields:
            last = flow.fields[-1]
            last.has_result = True
            last.is_replaced = flow.shows() and self._number_of(last.instruction, flow)
        elif kind == "end" and flow.fields:
            flow.fields.pop()

    def _number_of(self, instruction: str, flow: Flow) -> bool:
        """Put a sign for the number of the page or pages; return whether the field is one."""
        name = (instruction.split() or [""])[0].upper()
        sign = {"PAGE": PAGE_NUMBER, "NUMPAGES": PAGE_COUNT}.get(name)
        if sign is None or not flow.is_frame:
            return False
        flow.runs.append(Run(text=sign))
        return True

    def _note(self, each: Element, flow: Flow) -> None:
        kind = each.tag.removeprefix("w.").removesuffix("Reference")
        blocks = list(self._notes(kind, each.get("w.id", "")))
        self._count += 1
        mark = str(self._count)
        if not is_on(each.get("w.customMarkFollows", "0")):
            flow.runs.append(Run(text=mark, shift=1))
        for block in blocks:
            if isinstance(block, Paragraph):
                block.marker = superscript(mark)
                break
        flow.notes += blocks

    def _drawing(self, each: Element, flow: Flow) -> None:
        if is_unseen_drawing(each, self.page):
            if self.account(each):
                flow.warn(HIDDEN_TEXT)
            return
        ground, is_unseen = PAPER, False
        for part in resolved(each):
            if part.tag.startswith("v.") and part.get("style") is not None:
                ground, is_unseen = _known(vml_fill_of(part)), is_unseen_shape(part, self.page)
            elif part.tag == "wps.spPr":
                ground = _known(self._theme.fill_of(part))
            if part.tag == "w.txbxContent" and is_unseen:
                if self.account(part):
                    flow.warn(HIDDEN_TEXT)
            elif part.tag == "w.txbxContent":
                flow.after += self._boxes(part, flow, ground)
            elif part.tag == "a.t" and (part.text or "").strip():
                flow.warn(PARTLY_READ)
            elif part.tag == "v.textpath" and part.get("string") and is_unseen:
                flow.warn(HIDDEN_TEXT)
            elif part.tag == "v.textpath" and part.get("string"):
                flow.after.append(Paragraph(runs=[Run(text=part.get("string", ""))]))
            elif part.tag == "o.OLEObject":
                flow.warn(ATTACHMENTS)
            elif part.tag in {"c.chart", "dgm.relIds"}:
                flow.warn(PARTLY_READ, _share(each))
            elif (
                part.tag in {"pic.pic", "v.imagedata"} and (share := _share(each)) >= LEAST_PICTURE
            ):
                flow.warn(PARTLY_READ, share)

    def _formula(self, each: Element, flow: Flow) -> None:
        """Read a formula that is only a line of signs; a fraction or a power is not a line."""
        if any(part.tag not in _PLAIN_FORMULA for part in each.iter()):
            flow.warn(PARTLY_READ)
            flow.runs.append(Run(text=" [formula] "))
            return
        flow.runs += [Run(text=part.text or "") for part in each.iter("m.t")]


_PLAIN_FORMULA = {"m.oMath", "m.oMathPara", "m.oMathParaPr", "m.jc", "m.r", "m.t", "m.rPr", "m.sty",
                  "w.rPr", "w.rFonts", "w.i", "w.b", "m.ctrlPr", "m.nor"}  # fmt: skip


def children(parent: Element) -> Iterator[Element]:
    """Yield the children of an element.

    Alternatives stand for one place. The first alternative that Word knows gives its children.
    """
    for each in parent:
        if each.tag == "mc.AlternateContent":
            known = (choice for choice in each.findall("mc.Choice") if _is_known(choice))
            chosen = next(known, each.find("mc.Fallback"))
            if chosen is not None:
                yield from children(chosen)
        else:
            yield each


def texts_in(parent: Element) -> int:
    """Return the number of texts (`w:t`) inside an element; of alternatives, those of one."""
    number, waiting = 0, [parent]
    while waiting:
        for each in children(waiting.pop()):
            number += each.tag == "w.t" and bool((each.text or "").strip())
            waiting.append(each)
    return number


def _is_known(choice: Element) -> bool:
    """Return whether Word knows all namespaces that an alternative requires."""
    needed = choice.get(REQUIRES, "").split()
    return all(each.startswith(_KNOWN) for each in needed)


def _known(fill: str | None) -> Grounds:
    return (fill,) if fill else ()


def resolved(parent: Element) -> Iterator[Element]:
    """Yield the descendants; nothing of a text box, and only the first of alternatives."""
    for each in children(parent):
        yield each
        if each.tag != "w.txbxContent":
            yield from resolved(each)


def _form_field(begin: Element) -> list[Run]:
    """Return what a check box or a list of an old form shows."""
    box = begin.find("w.ffData/w.checkBox")
    if box is not None:
        state = box.find("w.checked")
        state = state if state is not None else box.find("w.default")
        return [Run(text="[x]" if state is not None and is_on(state.get("w.val", "1")) else "[ ]")]
    chosen = begin.find("w.ffData/w.ddList")
    if chosen is None:
        return []
    entries = [value(entry) for entry in chosen.findall("w.listEntry")]
    number = value(chosen.find("w.result")) or value(chosen.find("w.default")) or "0"
    at = int(number) if number.isdecimal() else 0
    return [Run(text=entries[at])] if at < len(entries) else []


def _share(drawing: Element) -> float:
    """Return the share of the page that a drawing covers; 1 if its size is not stated."""
    extent = drawing.find(".//wp.extent")
    if extent is not None:
        sizes = [extent.get(side, "") for side in ("cx", "cy")]
        if all(size.isdecimal() for size in sizes):
            return min(1.0, int(sizes[0]) * int(sizes[1]) / _PAGE_EMU)
    for shape in drawing.iter():
        found = {m[1]: float(m[2]) * _POINTS[m[3]] for m in _SIZE.finditer(shape.get("style", ""))}
        if len(found) == 2:
            return min(1.0, found["width"] * found["height"] / _PAGE_POINTS)
    return 1.0
