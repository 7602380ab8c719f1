"""DOCX files: paragraphs, tables, running headers, notes and text boxes.

python-docx was not used: it gives deleted and hidden text like any other text, and no text boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from .. import refusals
from ..types import ATTACHMENTS, HIDDEN_TEXT, TRACKED_CHANGES, ReaderLimits
from .blocks import Block, Paragraph, TypedCell, TypedRow, TypedTable
from .docx_numbering import DocxNumbering
from .docx_package import DocxPackage
from .docx_runs import Flow, RunReader, children
from .docx_styles import NO_LOOK, DocxStyles, ground_of, switch, value
from .lines import Framed, PageBreak, SectionEnd, Warned
from .running_lines import framed

PAPER = "FFFFFF"
#: Table styles without a ground of their own.
_BARE = frozenset({"", "TableGrid", "TableNormal"})
_AROUND = frozenset({"w.sdtContent", "w.customXml", "w.ins", "w.moveTo", "w.smartTag"})


def read_docx(path: Path, limits: ReaderLimits) -> list[Block]:
    """Return the text of a DOCX file. Raises InputRefused."""
    return _Docx(DocxPackage(path, limits)).blocks()


class _Docx:
    def __init__(self, package: DocxPackage) -> None:
        self._package = package
        self._related = package.related(package.main)
        self._styles = DocxStyles(self._tree("styles"))
        self._numbering = DocxNumbering(self._tree("numbering"))
        self._notes = {kind: self._notes_of(kind) for kind in ("footnote", "endnote")}
        settings = self._tree("settings")
        sides = settings.find("w.evenAndOddHeaders") if settings is not None else None
        self._has_sides = sides is not None and switch(sides)
        self._runs = RunReader(self._styles, self._note, self._box)

    def blocks(self) -> list[Block]:
        """Return the blocks of the whole document."""
        tree = self._package.tree(self._package.main)
        body = tree.find("w.body") if tree is not None else None
        if body is None:
            raise refusals.broken_document("DOCX")
        sections = [*body.iterfind("w.p/w.pPr/w.sectPr"), *body.iterfind("w.sectPr")]
        self._frames = self._frames_of(sections)
        self._types = [value(section.find("w.type")) for section in sections]
        flow = Flow()
        found: list[Block] = [*self._frames[:1]]
        section = 0
        for block in self._flow(body, flow, PAPER):
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

    def _notes_of(self, kind: str) -> dict[str, Element]:
        tree = self._tree(f"{kind}s")
        found = tree.iterfind(f"w.{kind}") if tree is not None else ()
        return {each.get("w.id", ""): each for each in found}

    def _note(self, kind: str, number: str) -> list[Block]:
        note = self._notes[kind].get(number)
        return [] if note is None else list(self._flow(note, Flow(), PAPER))

    def _box(self, content: Element, flow: Flow) -> list[Block]:
        inner = Flow(is_frame=flow.is_frame)
        found = list(self._flow(content, inner, None))
        return [*found, *inner.notes]

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
                    parts = {**parts, kind + side: list(self._flow(tree, flow, PAPER))}
            first = section.find("w.titlePg")
            found.append(framed(parts, has_first_page=first is not None and switch(first)))
        return found

    def _flow(self, parent: Element, flow: Flow, ground: str | None) -> Iterator[Block]:
        """Yield the blocks inside an element."""
        for each in children(parent):
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
                yield Warned(name=TRACKED_CHANGES)
            elif each.tag == "w.altChunk":
                yield Warned(name=ATTACHMENTS)
            elif each.tag in {"m.oMathPara", "m.oMath"}:
                self._runs.read(parent=_around(each), flow=flow, base=NO_LOOK, ground=ground)
        if flow.runs:
            # The mark of the last paragraph was deleted, so nothing has ended it.
            yield from _ended(flow, Paragraph())

    def _paragraph(self, each: Element, flow: Flow, ground: str | None) -> Iterator[Block]:
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
        ground = (ground_of({"w.shd": shade}) if shade is not None else None) or ground
        self._runs.read(each, flow, self._styles.look(style), ground)
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

    def _table(self, table: Element, flow: Flow, ground: str | None) -> TypedTable:
        style = value(table.find("w.tblPr/w.tblStyle"))
        inner = ground if style in _BARE else None
        return TypedTable(
            rows=[row for each in _parts(table, "w.tr") for row in self._row(each, flow, inner)]
        )

    def _row(self, row: Element, flow: Flow, ground: str | None) -> Iterator[TypedRow]:
        properties = row.find("w.trPr")
        stated = {each.tag: each for each in properties} if properties is not None else {}
        if "w.del" in stated:
            flow.warn(TRACKED_CHANGES)
            return
        if "w.hidden" in stated and switch(stated["w.hidden"]):
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

    def _cell(self, cell: Element, flow: Flow, ground: str | None) -> TypedCell:
        properties = cell.find("w.tcPr")
        stated = {each.tag: each for each in properties} if properties is not None else {}
        span = _number(value(stated.get("w.gridSpan")), 1)
        for merge in ("w.vMerge", "w.hMerge"):
            if merge in stated and value(stated[merge]) != "restart":
                return TypedCell(span=span)
        if "w.cellDel" in stated:
            return TypedCell(blocks=[Warned(name=TRACKED_CHANGES)], span=span)
        ground = ground_of(stated) or ground
        inner = Flow(is_frame=flow.is_frame, fields=flow.fields, notes=flow.notes)
        blocks = [
            block for block in self._flow(cell, inner, ground) if not isinstance(block, SectionEnd)
        ]
        flow.notes = inner.notes
        # A page end inside a cell does not end the page of its row.
        return TypedCell(blocks=[b for b in blocks if not isinstance(b, PageBreak)], span=span)


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
