"""DOCX files: paragraphs, tables, running headers, notes and text boxes.

python-docx was not used: it gives deleted and hidden text like any other text, and no text boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from .. import refusals
from ..types import ATTACHMENTS, HIDDEN_TEXT, PARTLY_READ, TRACKED_CHANGES, ReaderLimits
from .blocks import Block, Paragraph, TypedCell, TypedRow, TypedTable
from .docx_hidden import is_clipped, is_flat, is_off_page, page_of
from .docx_numbering import DocxNumbering
from .docx_package import DocxPackage
from .docx_runs import Flow, RunReader, children, texts_in
from .docx_styles import NO_LOOK, PAPER, DocxStyles, Grounds, ground_of, is_on, switch, value
from .docx_theme import DocxTheme
from .lines import Framed, PageBreak, SectionEnd, Warned
from .running_lines import framed

#: Conditional formats of a table style → the attribute and the bit of `w:tblLook`.
_CONDITIONS = {
    "firstRow": ("w.firstRow", 0x20), "lastRow": ("w.lastRow", 0x40),
    "firstCol": ("w.firstColumn", 0x80), "lastCol": ("w.lastColumn", 0x100),
}  # fmt: skip
_ALWAYS = frozenset(["wholeTable", "band1Horz", "band2Horz", "band1Vert", "band2Vert"])
_COLUMNS = frozenset({"firstCol", "lastCol"})
_AROUND = frozenset({"w.sdtContent", "w.customXml", "w.ins", "w.moveTo", "w.smartTag"})


def read_docx(path: Path, limits: ReaderLimits) -> list[Block]:
    """Return the text of a DOCX file. Raises InputRefused."""
    return _Docx(DocxPackage(path, limits)).blocks()


class _Docx:
    def __init__(self, package: DocxPackage) -> None:
        self._package = package
        self._related = package.related(package.main)
        settings = self._tree("settings")
        self._theme = DocxTheme(self._tree("theme"), settings)
        self._styles = DocxStyles(self._resolved("styles"))
        self._numbering = DocxNumbering(self._tree("numbering"))
        self._notes = {kind: self._notes_of(kind) for kind in ("footnote", "endnote")}
        sides = settings.find("w.evenAndOddHeaders") if settings is not None else None
        self._has_sides = sides is not None and switch(sides)
        self._runs = RunReader(self._styles, self._note, self._box, self._theme)

    def blocks(self) -> list[Block]:
        """Return the blocks of the whole document."""
        tree = self._package.tree(self._package.main)
        body = tree.find("w.body") if tree is not None else None
        if body is None:
            raise refusals.broken_document("DOCX")
        self._theme.resolve(body)
        sections = [*body.iterfind("w.p/w.pPr/w.sectPr"), *body.iterfind("w.sectPr")]
        self._runs.page = page_of(sections)
        self._frames = self._frames_of(sections)
        self._types = [value(section.find("w.type")) for section in sections]
        flow = Flow()
        found: list[Block] = [*self._frames[:1]]
        section = 0
        for block in self._whole(body, flow):
            if isinstance(block, SectionEnd):
                section += 1
                found += self._begin_section(section, flow)
            else:
                found.append(block)
        found += flow.notes
        while found and isinstance(found[-1], PageBreak):
            found.pop()
        return found

    def _begin_section(self, section: int, flow: Flow) -> Iterator[Block]:
        if section < len(self._types) and self._types[section] not in {"continuous", "nextColumn"}:
            yield from flow.notes
            flow.notes = []
            yield PageBreak()
        yield from self._frames[section : section + 1]

    def _tree(self, kind: str) -> Element | None:
        part = next((part for k, part in self._related.values() if k == kind), None)
        return self._package.tree(part) if part else None

    def _resolved(self, kind: str) -> Element | None:
        tree = self._tree(kind)
        self._theme.resolve(tree)
        return tree

    def _notes_of(self, kind: str) -> dict[str, Element]:
        tree = self._resolved(f"{kind}s")
        found = tree.iterfind(f"w.{kind}") if tree is not None else ()
        return {each.get("w.id", ""): each for each in found}

    def _note(self, kind: str, number: str) -> list[Block]:
        note = self._notes[kind].get(number)
        if note is None:
            return []
        # The texts of a note are no texts of the paragraph that refers to the note.
        taken = self._runs.taken
        found = list(self._whole(note, Flow()))
        self._runs.taken = taken
        return found

    def _box(self, content: Element, flow: Flow, ground: Grounds) -> list[Block]:
        inner = Flow(is_frame=flow.is_frame, is_unseen=flow.is_unseen)
        found = list(self._flow(content, inner, ground))
        return [*found, *inner.notes]

    def _whole(self, parent: Element, flow: Flow) -> Iterator[Block]:
        """Yield the blocks of a part, with a warning behind each child with texts left unread."""
        for each in children(parent):
            before, expected = self._runs.taken, texts_in(_around(each))
            yield from self._child(each, flow, PAPER)
            if self._runs.taken - before < expected:
                yield Warned(name=PARTLY_READ)
        yield from _rest(flow)

    def _frames_of(self, sections: Iterable[Element]) -> list[Framed]:
        """Return the running lines of each section; a section inherits what it does not state."""
        found = []
        parts: dict[str, list[Block]] = {}
        for section in sections:
            for each in section:
                kind = each.tag.removeprefix("w.").removesuffix("Reference")
                if kind not in {"header", "footer"}:
                    continue
                side = {"first": "f", "even": "l"}.get(each.get("w.type", ""), "")
                if side == "l" and not self._has_sides:
                    continue
                _, part = self._related.get(each.get("r.id", ""), ("", ""))
                tree = self._package.tree(part)
                if tree is not None:
                    flow = Flow(is_frame=True)
                    self._theme.resolve(tree)
                    parts = {**parts, kind + side: list(self._whole(tree, flow))}
            first = section.find("w.titlePg")
            found.append(framed(parts, has_first_page=first is not None and switch(first)))
        return found

    def _flow(self, parent: Element, flow: Flow, ground: Grounds) -> Iterator[Block]:
        """Yield the blocks inside an element."""
        for each in children(parent):
            yield from self._child(each, flow, ground)
        yield from _rest(flow)

    def _child(self, each: Element, flow: Flow, ground: Grounds) -> Iterator[Block]:
        if each.tag == "w.p":
            yield from self._paragraph(each, flow, ground)
        elif each.tag == "w.tbl":
            yield self._table(each, flow, ground)
        elif each.tag in _AROUND:
            if each.tag in {"w.ins", "w.moveTo"}:
                yield Warned(name=TRACKED_CHANGES)
            yield from self._flow(each, flow, ground)
        elif each.tag == "w.sdt":
            for content in each.iterfind("w.sdtContent"):
                yield from self._flow(content, flow, ground)
        elif each.tag in {"w.del", "w.moveFrom"}:
            self._runs.account(each)
            yield Warned(name=TRACKED_CHANGES)
        elif each.tag in {"w.altChunk", "w.subDoc"}:
            yield Warned(name=ATTACHMENTS)
        elif each.tag in {"m.oMathPara", "m.oMath"}:
            self._runs.read(parent=_around(each), flow=flow, base=NO_LOOK, ground=ground)

    def _paragraph(self, each: Element, flow: Flow, ground: Grounds) -> Iterator[Block]:
        properties = each.find("w.pPr")
        style = value(each.find("w.pPr/w.pStyle")) or self._styles.default_paragraph
        paragraph = Paragraph()
        if self._property(each, style, "w.pageBreakBefore") and not flow.is_frame:
            yield from flow.notes
            flow.notes = []
            yield PageBreak()
        shade = self._styles.paragraph(style, "w.shd")
        own = properties.find("w.shd") if properties is not None else None
        shade = own if own is not None else shade
        own_ground = ground_of({"w.shd": shade}) if shade is not None else None
        ground = (own_ground,) if own_ground else ground
        around = flow.is_unseen
        flow.is_unseen = around or self._is_unseen(properties, style)
        self._runs.read(each, flow, self._styles.look(style), ground)
        flow.is_unseen = around
        if properties is not None and properties.find("w.rPr/w.del") is not None:
            # The mark of the paragraph is deleted: the next paragraph continues this one.
            flow.warn(TRACKED_CHANGES)
            return
        paragraph.marker = self._marker(each, style)
        level = self._styles.paragraph(style, "w.outlineLvl")
        paragraph.is_heading = level is not None or each.find("w.pPr/w.outlineLvl") is not None
        yield from _ended(flow, paragraph)
        if properties is not None and properties.find("w.sectPr") is not None:
            yield SectionEnd()

    def _is_unseen(self, properties: Element | None, style: str) -> bool:
        own = properties.find("w.spacing") if properties is not None else None
        inherited = self._styles.paragraphs(style, "w.spacing")
        if is_clipped([*([own] if own is not None else []), *inherited]):
            return True
        return properties is not None and is_off_page(properties, self._runs.page)

    def _property(self, each: Element, style: str, tag: str) -> bool:
        own = each.find(f"w.pPr/{tag}")
        stated = own if own is not None else self._styles.paragraph(style, tag)
        return stated is not None and switch(stated)

    def _marker(self, each: Element, style: str) -> str:
        own = each.find("w.pPr/w.numPr")
        inherited = self._styles.paragraph(style, "w.numPr")
        number = value(own.find("w.numId")) if own is not None else ""
        depth = value(own.find("w.ilvl")) if own is not None else ""
        if inherited is not None:
            number = number or value(inherited.find("w.numId"))
            depth = depth or value(inherited.find("w.ilvl"))
        if number in {"", "0"}:
            return ""
        return self._numbering.marker(number, int(depth) if depth.isdecimal() else 0)

    def _table(self, table: Element, flow: Flow, ground: Grounds) -> TypedTable:
        style = value(table.find("w.tblPr/w.tblStyle"))
        base = flow.base
        rows = [*_parts(table, "w.tr")]
        found: list[TypedRow] = []
        switched_on = _switched_on(table)
        for at, each in enumerate(rows):
            kinds = _ALWAYS | _COLUMNS
            kinds |= {"firstRow"} if at == 0 else set()
            kinds |= {"lastRow"} if at == len(rows) - 1 else set()
            look, grounds = self._styles.table(style, kinds & switched_on, ground)
            flow.base = look.over(base)
            found += self._row(each, flow, grounds)
        flow.base = base
        return TypedTable(rows=found)

    def _row(self, row: Element, flow: Flow, ground: Grounds) -> Iterator[TypedRow]:
        properties = row.find("w.trPr")
        stated = {each.tag: each for each in properties} if properties is not None else {}
        if "w.del" in stated:
            flow.warn(TRACKED_CHANGES)
            self._runs.account(row)
            return
        is_hidden = "w.hidden" in stated and switch(stated["w.hidden"])
        if is_hidden or is_flat(stated.get("w.trHeight")):
            if self._runs.account(row):
                flow.warn(HIDDEN_TEXT)
            return
        cells: list[TypedCell] = []
        before = _number(value(stated.get("w.gridBefore")), 0)
        if before:
            cells.append(TypedCell(span=before))
        cells += [self._cell(each, flow, ground) for each in _parts(row, "w.tc")]
        if "w.ins" in stated and cells:
            cells[0].blocks.append(Warned(name=TRACKED_CHANGES))
        is_header = "w.tblHeader" in stated and switch(stated["w.tblHeader"])
        yield TypedRow(cells=cells, is_header=is_header)

    def _cell(self, cell: Element, flow: Flow, ground: Grounds) -> TypedCell:
        properties = cell.find("w.tcPr")
        stated = {each.tag: each for each in properties} if properties is not None else {}
        span = _number(value(stated.get("w.gridSpan")), 1)
        for merge in ("w.vMerge", "w.hMerge"):
            if merge in stated and value(stated[merge]) != "restart":
                # Only the first of the merged cells is on the page.
                hidden = [Warned(name=HIDDEN_TEXT)] if self._runs.account(cell) else []
                return TypedCell(blocks=[*hidden], span=span)
        if "w.cellDel" in stated:
            self._runs.account(cell)
            return TypedCell(blocks=[Warned(name=TRACKED_CHANGES)], span=span)
        own = ground_of(stated)
        ground = (own,) if own else ground
        inner = Flow(
            is_frame=flow.is_frame,
            is_unseen=flow.is_unseen,
            base=flow.base,
            fields=flow.fields,
            notes=flow.notes,
        )
        blocks = [
            block for block in self._flow(cell, inner, ground) if not isinstance(block, SectionEnd)
        ]
        flow.notes = inner.notes
        # A page end inside a cell does not end the page of its row.
        return TypedCell(blocks=[b for b in blocks if not isinstance(b, PageBreak)], span=span)


def _rest(flow: Flow) -> Iterator[Block]:
    """Yield what no paragraph has ended: text before a deleted last mark, and warnings."""
    if flow.runs:
        yield from _ended(flow, Paragraph())
    yield from flow.before
    flow.before = []


def _ended(flow: Flow, paragraph: Paragraph) -> Iterator[Block]:
    """Yield the finished paragraph with what precedes and follows it."""
    yield from flow.before
    if flow.runs or not any(isinstance(block, PageBreak) for block in flow.before):
        paragraph.runs = flow.runs
        if not flow.runs:
            paragraph.marker = ""
        yield paragraph
    yield from flow.after
    flow.before, flow.runs, flow.after = [], [], []


def _switched_on(table: Element) -> frozenset[str]:
    """Return the conditional formats of the table's style; `w:tblLook` switches some of them on."""
    look = table.find("w.tblPr/w.tblLook")
    stated = look.attrib if look is not None else {}
    bits = value(look)
    flags = int(bits, 16) if re.fullmatch("[0-9A-Fa-f]{1,8}", bits) else 0
    return _ALWAYS | {
        kind
        for kind, (name, bit) in _CONDITIONS.items()
        if (is_on(stated[name]) if name in stated else flags & bit)
    }


def _parts(parent: Element, tag: str) -> Iterator[Element]:
    """Yield rows or cells, also those inside content controls and insertions."""
    for each in children(parent):
        if each.tag == tag:
            yield each
        elif each.tag in _AROUND or each.tag == "w.sdt":
            yield from _parts(each, tag)


def _around(each: Element) -> Element:
    parent = Element("w.p")
    parent.append(each)
    return parent


def _number(text: str, otherwise: int) -> int:
    return max(1, min(63, int(text))) if text.isdecimal() else otherwise
