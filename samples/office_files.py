"""Small DOCX, RTF and C-CDA files, written part by part."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_NAMES = " ".join(
    f'xmlns:{prefix}="{space}"'
    for prefix, space in {
        "w": _W,
        "r": _R,
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
        "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
        "v": "urn:schemas-microsoft-com:vml",
    }.items()
)
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/></Types>'
)


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """Return a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            # A fixed time makes equal files of equal parts.
            part = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            part.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(part, content)
    return buffer.getvalue()


def docx_of(
    *paragraphs: str,
    body: str = "",
    parts: Mapping[str, str] | None = None,
    raw_parts: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a DOCX of plain paragraphs and the XML `body`.

    `parts` has the XML inside further parts by kind: styles, numbering, footnotes, header1, …
    """
    inside = "".join(paragraph(text) for text in paragraphs) + body
    found = {"document": f"<w:body>{inside}</w:body>", **(parts or {})}
    roots = {"document": "document", "numbering": "numbering", "styles": "styles"}
    files = {"[Content_Types].xml": _TYPES.encode()}
    links = []
    for kind, content in found.items():
        plain = kind.rstrip("0123456789")
        root = roots.get(kind, {"header": "hdr", "footer": "ftr"}.get(plain, kind))
        files[f"word/{kind}.xml"] = f"<w:{root} {_NAMES}>{content}</w:{root}>".encode()
        links.append(f'<Relationship Id="{kind}" Type="{_R}/{plain}" Target="{kind}.xml"/>')
    main = f'<Relationship Id="r" Type="{_R}/officeDocument" Target="word/document.xml"/>'
    files["_rels/.rels"] = f'<Relationships xmlns="{_RELATIONS}">{main}</Relationships>'.encode()
    inner = f'<Relationships xmlns="{_RELATIONS}">{"".join(links[1:])}</Relationships>'
    files["word/_rels/document.xml.rels"] = inner.encode()
    return zipped({**files, **(raw_parts or {})})


def paragraph(text: str, properties: str = "") -> str:
    """Return the XML of a paragraph; `properties` is the inside of `w:pPr`."""
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text)}</w:p>"


def run(text: str, properties: str = "") -> str:
    """Return the XML of a run; `properties` is the inside of `w:rPr`."""
    words = '</w:t><w:tab/><w:t xml:space="preserve">'.join(map(escape, text.split("\t")))
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{words}</w:t></w:r>'


def runs(*parts: str) -> str:
    """Return the XML of a paragraph of runs and other elements."""
    return f"<w:p>{''.join(parts)}</w:p>"


def table(*rows: tuple[str, ...], properties: str = "") -> str:
    """Return the XML of a table; a newline in a cell begins a paragraph."""
    body = "".join(f"<w:tr>{''.join(map(cell, row))}</w:tr>" for row in rows)
    return f"<w:tbl><w:tblPr>{properties}</w:tblPr>{body}</w:tbl>"


def cell(text: str, properties: str = "") -> str:
    """Return the XML of a cell."""
    inside = "".join(map(paragraph, text.split("\n")))
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inside}</w:tc>"


def rtf_of(body: str) -> bytes:
    """Return an RTF file with the usual fonts and colours around a body in RTF."""
    fonts = (
        r"{\fonttbl{\f0\fswiss\fcharset0{\*\panose 020b0604}Arial;}"
        r"{\f1\froman\fcharset2 Symbol;}{\f2\fswiss\fcharset204 Arial CYR;}}"
    )
    colours = r"{\colortbl;\red255\green255\blue255;\red31\green78\blue121;}"
    return (r"{\rtf1\ansi\ansicpg1252\deff0" + fonts + colours + body + "}").encode("cp1252")


def ccda_of(*sections: str, header: str = "") -> bytes:
    """Return a C-CDA document of sections, each the inside of a `section` element."""
    inside = "".join(f"<component><section>{each}</section></component>" for each in sections)
    body = f"<component><structuredBody>{inside}</structuredBody></component>"
    return (
        "<?xml version='1.0' encoding='UTF-8'?>"
        f"<ClinicalDocument xmlns='urn:hl7-org:v3'>{header}{body}</ClinicalDocument>"
    ).encode()
