"""C-CDA documents: the patient's header, and the narrative of each section as its author signed it.

The coded entries are not read: the narrative is the attested content (CDA R2, 4.3.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from .. import refusals
from ..types import PARTLY_READ, TRACKED_CHANGES
from .blocks import Block, Paragraph, Run, TypedCell, TypedRow, TypedTable
from .lines import Blank, Warned
from .xml_tree import parse

NAMESPACES = {"urn:hl7-org:v3": "cda", "urn:hl7-org:sdtc": "sdtc"}
_SPACE = re.compile(r"\s+")
_DATE = re.compile(r"(\d{4})(\d{2})?(\d{2})?(?:(\d{2})(\d{2}))?")
#: Codes of HL7's AdministrativeGender.
_SEXES = {"F": "Female", "M": "Male", "UN": "Undifferentiated"}
#: HL7's NullFlavor: why a value is absent.
_ABSENT = {
    "NI": "no information", "UNK": "unknown", "ASKU": "asked but unknown", "NASK": "not asked",
    "NAV": "temporarily unavailable", "NA": "not applicable", "MSK": "masked", "OTH": "other",
}  # fmt: skip
_ROWS = frozenset({"cda.thead", "cda.tbody", "cda.tfoot"})


def read_ccda(path: Path) -> list[Block]:
    """Return header and narrative of a C-CDA document. Raises InputRefused."""
    root = parse(path.read_bytes(), NAMESPACES, "C-CDA")
    if root.tag != "cda.ClinicalDocument":
        raise refusals.other_markup()
    found = list(_header(root))
    structured = root.find("cda.component/cda.structuredBody")
    if structured is not None:
        found += _sections(structured)
    elif root.find("cda.component/cda.nonXMLBody") is not None:
        raise refusals.enclosed_body()
    return found


def _header(root: Element) -> Iterator[Block]:
    """Yield title, patient, visit and author, as one line for each fact."""
    yield from _line("", _text(root.find("cda.title")))
    # A document about a group names several patients. The text lists every patient.
    for role in root.iterfind("cda.recordTarget/cda.patientRole"):
        patient = role.find("cda.patient")
        if patient is None:
            continue
        yield from _line("Patient: ", _name(patient.find("cda.name")))
        yield from _line("DOB: ", _time(patient.find("cda.birthTime")))
        sex = patient.find("cda.administrativeGenderCode")
        yield from _line("Sex: ", _coded(sex, _SEXES))
        yield from _line("MRN: ", _identifier(role.findall("cda.id")))
    yield from _line("Document date: ", _time(root.find("cda.effectiveTime")))
    yield from _visit(root.find("cda.componentOf/cda.encompassingEncounter"))
    author = root.find("cda.author/cda.assignedAuthor/cda.assignedPerson/cda.name")
    yield from _line("Author: ", _name(author))
    keeper = "cda.custodian/cda.assignedCustodian/cda.representedCustodianOrganization/cda.name"
    yield from _line("Facility: ", _text(root.find(keeper)))
    yield Blank()


def _visit(encounter: Element | None) -> Iterator[Block]:
    if encounter is None:
        return
    time = encounter.find("cda.effectiveTime")
    if time is not None:
        low, high = _time(time.find("cda.low")), _time(time.find("cda.high"))
        span = f"{low} to {high}" if low and high and low != high else low or high or _time(time)
        yield from _line("Date of service: ", span)
    yield from _line("Encounter: ", _coded(encounter.find("cda.code"), {}))
    place = encounter.find("cda.location/cda.healthCareFacility/cda.location/cda.name")
    yield from _line("Location: ", _text(place))


def _line(label: str, text: str) -> Iterator[Block]:
    if text:
        yield Paragraph(runs=[Run(text=label + text)])


def _sections(parent: Element) -> Iterator[Block]:
    for section in parent.iterfind("cda.component/cda.section"):
        title = _text(section.find("cda.title"))
        if title:
            yield Paragraph(runs=[Run(text=title)], is_heading=True)
        text = section.find("cda.text")
        narrative = list(_blocks(text)) if text is not None else []
        yield from narrative
        flavor = section.get("nullFlavor") or (text.get("nullFlavor") if text is not None else None)
        if flavor and not narrative:
            yield from _line("", _ABSENT.get(flavor, "no information").capitalize())
        elif not narrative and section.find("cda.entry") is not None:
            # Coded entries without a narrative: what the author saw is not in the document.
            yield Warned(name=PARTLY_READ)
        yield from _sections(section)


def _blocks(parent: Element) -> Iterator[Block]:
    """Yield the paragraphs, lists and tables of a narrative block (CDA R2, 4.3.5)."""
    runs: list[Run] = []
    warned: list[Block] = []

    def flush() -> Iterator[Block]:
        if any(run.text.strip() for run in runs):
            yield Paragraph(runs=_trimmed(runs))
        yield from warned
        runs.clear()
        warned.clear()

    for part in _parts(parent):
        if isinstance(part, Run):
            runs.append(part)
            continue
        if isinstance(part, Warned):
            warned.append(part)
            continue
        yield from flush()
        if part.tag == "cda.table":
            yield from _captioned(part, _table(part))
        elif part.tag == "cda.list":
            yield from _captioned(part, *_list(part))
        elif part.tag == "cda.renderMultiMedia":
            yield Warned(name=PARTLY_READ)
        else:
            yield from _captioned(part, *_blocks(part))
    yield from flush()


def _parts(
    parent: Element, *, shift: int = 0, struck: bool = False
) -> Iterator[Run | Element | Warned]:
    """Yield runs of text, elements that are blocks of their own, and warnings."""
    yield from _run(parent.text, shift, struck)
    for each in parent:
        if _is_deleted(each):
            yield Warned(name=TRACKED_CHANGES)
        elif each.tag in _INLINE:
            moved = {"cda.sup": 1, "cda.sub": -1}.get(each.tag, shift)
            lined = struck or "strike" in each.get("styleCode", "").lower()
            yield from _parts(each, shift=moved, struck=lined)
        elif each.tag == "cda.br":
            yield Run(text="\n")
        elif each.tag not in {"cda.caption", "cda.footnoteRef"}:
            yield each
        yield from _run(each.tail, shift, struck)


_INLINE = frozenset({"cda.content", "cda.linkHtml", "cda.sub", "cda.sup"})


def _is_deleted(each: Element) -> bool:
    """Return whether a revision deleted the content (`revised="delete"`)."""
    return each.get("revised") == "delete"


def _run(text: str | None, shift: int, struck: bool) -> Iterator[Run]:
    if text:
        yield Run(text=_SPACE.sub(" ", text), shift=shift, struck=struck)


def _trimmed(runs: Sequence[Run]) -> list[Run]:
    """Return runs without line breaks at the ends."""
    found = list(runs)
    while found and not found[0].text.strip():
        found.pop(0)
    while found and not found[-1].text.strip():
        found.pop()
    return found


def _captioned(part: Element, *blocks: Block) -> Iterator[Block]:
    yield from _line("", _text(part.find("cda.caption")))
    yield from blocks


def _list(part: Element) -> Iterator[Block]:
    is_ordered = part.get("listType") == "ordered"
    for number, item in enumerate(part.iterfind("cda.item"), start=1):
        if _is_deleted(item):
            yield Warned(name=TRACKED_CHANGES)
            continue
        marker = f"{number}." if is_ordered else "•"
        for block in _captioned(item, *_blocks(item)):
            if marker and isinstance(block, Paragraph):
                block.marker, marker = marker, ""
            yield block


def _table(table: Element) -> TypedTable:
    rows: list[TypedRow] = []
    for group in table:
        if _is_deleted(group):
            rows.append(_deleted_row())
            continue
        if group.tag in _ROWS:
            rows += _rows(group.iterfind("cda.tr"), is_header=group.tag == "cda.thead")
        elif group.tag == "cda.tr":
            rows += _rows([group], is_header=False)
    return TypedTable(rows=rows)


def _rows(found: Iterable[Element], *, is_header: bool) -> Iterator[TypedRow]:
    """Yield rows; a cell that covers several rows is empty below its first row."""
    covered: dict[int, int] = {}
    for row in found:
        if _is_deleted(row):
            yield _deleted_row()
            continue
        cells: list[TypedCell] = []
        column = 0
        for each in row:
            if each.tag not in {"cda.td", "cda.th"}:
                continue
            while covered.get(column, 0) > 0:
                covered[column] -= 1
                cells.append(TypedCell())
                column += 1
            span = _number(each.get("colspan", ""))
            down = _number(each.get("rowspan", "")) - 1
            blocks = [Warned(name=TRACKED_CHANGES)] if _is_deleted(each) else _blocks(each)
            cells.append(TypedCell(blocks=list(blocks), span=span))
            for at in range(column, column + span):
                covered[at] = down
            column += span
        while covered.get(column, 0) > 0:
            covered[column] -= 1
            cells.append(TypedCell())
            column += 1
        yield TypedRow(cells=cells, is_header=is_header)


def _deleted_row() -> TypedRow:
    """Return a row that has only the warning of a deletion."""
    return TypedRow(cells=[TypedCell(blocks=[Warned(name=TRACKED_CHANGES)])])


def _number(text: str) -> int:
    return max(1, min(63, int(text))) if text.isdecimal() and len(text) < 4 else 1


def _text(element: Element | None) -> str:
    return "" if element is None else _SPACE.sub(" ", "".join(element.itertext())).strip()


def _name(element: Element | None) -> str:
    if element is None:
        return ""
    order = ("cda.prefix", "cda.given", "cda.family", "cda.suffix")
    parts = [_text(part) for tag in order for part in element.findall(tag)]
    return " ".join(part for part in parts if part) or _text(element)


def _time(element: Element | None) -> str:
    """Return a time of HL7 (`20240709`) as 2024-07-09; empty if none is stated."""
    value = element.get("value", "") if element is not None else ""
    match = _DATE.match(value)
    if match is None:
        return ""
    date = "-".join(part for part in match.group(1, 2, 3) if part)
    return f"{date} {match[4]}:{match[5]}" if match[4] and match[5] else date


def _coded(element: Element | None, words: dict[str, str]) -> str:
    if element is None:
        return ""
    code = words.get(element.get("code", ""), "")
    return element.get("displayName") or code or _text(element.find("cda.originalText"))


def _identifier(found: Sequence[Element]) -> str:
    return next((each.get("extension", "") for each in found if each.get("extension")), "")
