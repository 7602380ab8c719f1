"""Hostile text files and images of the newer types, each with the code that its refusal has."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from medproc.env import PROJECT_ROOT
from samples import office_files as office

HEIC_NOTE = PROJECT_ROOT / "samples" / "visit.heic"
MEGABYTE = 1_000_000
_CDA = '<ClinicalDocument xmlns="urn:hl7-org:v3">{}</ClinicalDocument>'
_TEXT = "<component><structuredBody><component><section><text>{}</text></section></component>"
_TEXT += "</structuredBody></component>"


@dataclass(frozen=True, kw_only=True)
class HostileText:
    """One file: how to build it, and the code and a part of the message of its refusal."""

    name: str
    build: Callable[[], bytes]
    code: str
    says: str


def _zip_bomb() -> bytes:
    """Return a DOCX whose main part unpacks to 1 GB."""
    return office.docx_of(raw_parts={"word/document.xml": b" " * 1000 * MEGABYTE})


def _lying_zip() -> bytes:
    """Return a DOCX whose list states 100 bytes for a part of 200 MB."""
    raw = bytearray(office.docx_of(raw_parts={"word/document.xml": b" " * 200 * MEGABYTE}))
    at = raw.rfind(b"word/document.xml") - 46
    raw[at + 24 : at + 28] = struct.pack("<I", 100)
    return bytes(raw)


def _many_parts() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for number in range(20_000):
            file.writestr(f"word/{number}.xml", b"")
    return buffer.getvalue()


def _nested_zip() -> bytes:
    inner = _many_parts()
    for _ in range(3):
        inner = office.zipped({"word/inner.zip": inner})
    return inner


def _encrypted_zip() -> bytes:
    raw = bytearray(office.docx_of("Note"))
    at = raw.find(b"PK\x01\x02")
    while at >= 0:
        raw[at + 8] |= 1
        at = raw.find(b"PK\x01\x02", at + 4)
    return bytes(raw)


def _entities() -> bytes:
    lines = ['<!ENTITY a0 "ha">'] + [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)]
    return f"<?xml version='1.0'?><!DOCTYPE x [{''.join(lines)}]>{_CDA.format('&a9;')}".encode()


def _outside() -> bytes:
    told = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    return f"<?xml version='1.0'?>{told}{_CDA.format('&f;')}".encode()


def _deep_xml() -> bytes:
    return _CDA.format(_TEXT.format("<content>" * 100_000)).encode()


def _many_elements() -> bytes:
    return _CDA.format(_TEXT.format("<br/>" * 5 * MEGABYTE)).encode()


def _deep_docx() -> bytes:
    tables = "<w:tbl><w:tr><w:tc>" * 5000 + "</w:tc></w:tr></w:tbl>" * 5000
    return office.docx_of(body=tables)


def _docx_entities() -> bytes:
    told = b'<!DOCTYPE x [<!ENTITY a "b">]>'
    return office.docx_of(raw_parts={"word/document.xml": told + b"<a/>"})


def _large_heic() -> bytes:
    """Return a HEIC that states 40,000 × 40,000 pixels."""
    raw = bytearray(HEIC_NOTE.read_bytes())
    at = raw.find(b"ispe")
    raw[at + 8 : at + 16] = struct.pack(">II", 40_000, 40_000)
    return bytes(raw)


def _large_webp() -> bytes:
    body = b"\0\0\0\0" + (16_382).to_bytes(3, "little") + (16_382).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", 4 + 8 + 10) + b"WEBPVP8X" + struct.pack("<I", 10) + body


def _large_bmp() -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, 40_000, 40_000, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


def _short_bmp() -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, 1000, 1000, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


def _password() -> bytes:
    """Return the beginning of a DOCX with a password: an OLE file with an encrypted package."""
    return (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1016) + "EncryptedPackage".encode("utf-16-le")
    )


HOSTILE_TEXTS = [
    HostileText(name=name, build=build, code=code, says=says)
    for name, build, code, says in (
        ("zip_bomb", _zip_bomb, "INPUT_TOO_LARGE", "unpacks"),
        ("lying_zip", _lying_zip, "INPUT_INVALID", "damaged"),
        ("many_parts", _many_parts, "INPUT_TOO_LARGE", "too many parts"),
        ("nested_zip", _nested_zip, "INPUT_INVALID", "damaged"),
        ("encrypted_zip", _encrypted_zip, "INPUT_ENCRYPTED", "password"),
        ("cut_docx", lambda: office.docx_of("Note")[:-30], "INPUT_INVALID", ""),
        ("docx_entities", _docx_entities, "INPUT_INVALID", "DOCTYPE"),
        ("deep_docx", _deep_docx, "INPUT_INVALID", "too deeply"),
        ("xlsx", lambda: office.zipped({"xl/workbook.xml": b"<a/>"}), "INPUT_INVALID", "no DOCX"),
        ("odt", lambda: office.zipped({"content.xml": b"<a/>"}), "INPUT_INVALID", "no DOCX"),
        ("password", _password, "INPUT_ENCRYPTED", "password"),
        ("doc", lambda: _password()[:600], "INPUT_INVALID", "DOC"),
        ("deep_rtf", lambda: b"{\\rtf1" + b"{" * 100_000, "INPUT_INVALID", "deeply"),
        ("open_rtf", lambda: b"{\\rtf1 Dose {\\b 5 mg", "INPUT_INVALID", "damaged"),
        ("two_rtf", lambda: b"{\\rtf1 a}{\\rtf1 b}", "INPUT_INVALID", "damaged"),
        ("binary_rtf", lambda: b"{\\rtf1 {\\pict\\bin999999999 x}}", "INPUT_INVALID", "damaged"),
        ("large_rtf", lambda: b"{\\rtf1 " + b"a " * 20 * MEGABYTE, "INPUT_TOO_LARGE", "bytes"),
        ("entities", _entities, "INPUT_INVALID", "DOCTYPE"),
        ("outside", _outside, "INPUT_INVALID", "DOCTYPE"),
        ("deep_xml", _deep_xml, "INPUT_INVALID", "too deeply"),
        ("many_elements", _many_elements, "INPUT_TOO_LARGE", "elements"),
        ("no_cda", lambda: b"<?xml version='1.0'?><html/>", "INPUT_INVALID", "no C-CDA"),
        ("large_attribute", lambda: _CDA.format(f'<title a="{"x" * 40 * MEGABYTE}"/>').encode(),
         "INPUT_TOO_LARGE", "bytes"),
        ("large_heic", _large_heic, "INPUT_TOO_LARGE", "pixels"),
        ("cut_heic", lambda: HEIC_NOTE.read_bytes()[:900], "INPUT_INVALID", ""),
        ("large_webp", _large_webp, "INPUT_TOO_LARGE", "pixels"),
        ("large_bmp", _large_bmp, "INPUT_TOO_LARGE", "pixels"),
        ("short_bmp", _short_bmp, "INPUT_INVALID", ""),
        ("long_line", lambda: b"word " * 20 * MEGABYTE, "INPUT_TOO_LARGE", "bytes"),
        ("form_feeds", lambda: b"\f" * MEGABYTE, "INPUT_TOO_LARGE", "pages"),
        ("line_ends", lambda: b"a\n" * 15 * MEGABYTE, "INPUT_TOO_LARGE", "pages"),
        ("columns", lambda: b"a  b\n" * 6 * MEGABYTE, "INPUT_TOO_LARGE", "pages"),
        ("pdf_behind_text", lambda: b"Note\n" * 300 + b"%PDF-1.4\n", "INPUT_INVALID", "unknown"),
        ("hl7", lambda: b"MSH|^~\\&|LAB\rPID|1||123\r", "INPUT_INVALID", "HL7 v2"),
        ("compressed", lambda: zlib.compress(b"Note " * 100), "INPUT_INVALID", ""),
    )
]  # fmt: skip
