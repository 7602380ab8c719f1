"""Tell the type of a file by its first 8 KiB and, for a zip file, its end; never by its name.

The parent calls this module, so bytes are only compared, never parsed.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from . import refusals
from .types import InputRefused, MediaType

#: PDF readers accept the header within the first 1,024 bytes (PDF 1.7, implementation note 13).
PDF_JUNK_BYTES = 1024
HEAD_BYTES = 8192
#: The list of the files inside a zip file is at its end; a DOCX has about 20 names.
TAIL_BYTES = 65_536

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", MediaType.PNG),
    (b"\xff\xd8\xff", MediaType.JPEG),
    (b"II*\x00", MediaType.TIFF),
    (b"MM\x00*", MediaType.TIFF),
    (b"II+\x00", MediaType.TIFF),
    (b"MM\x00+", MediaType.TIFF),
    (b"{\\rtf", MediaType.RTF),
)
#: Major brands of HEIF files with HEVC images (ISO/IEC 23008-12, annex B).
_HEIC_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1", b"hevc", b"hevx"}
#: Sizes of the header that follows the 14 bytes of a BMP's file header.
_BMP_HEADERS = {12, 40, 52, 56, 64, 108, 124}
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x19\x1c-\x1f]")
#: Share of control characters above which a file is no text. The child refuses fewer of them too.
MOST_CONTROLS = 0.02
#: Share of pairs of bytes with a 0 from which text is UTF-16.
ZEROS = 0.7
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_HL7 = re.compile(rb"[\x0b\s]*(?:MSH|FHS|BHS)\|")
_CLINICAL_DOCUMENT = re.compile(r"<(?:[\w.-]+:)?ClinicalDocument[\s>]")
_MARKUP = re.compile(r"\s*<(?:\?xml|!DOCTYPE|!--|html|[A-Za-z][\w.:-]*[\s>/])", re.IGNORECASE)
_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*\{\s*\")")


def sniff(path: str | Path) -> MediaType | None:
    """Return the media type of the file at `path`; None for an unsupported type."""
    head, tail = _ends(Path(path))
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature):
            return media_type
    if b"%PDF-" in head[: PDF_JUNK_BYTES + len(b"%PDF-")]:
        return MediaType.PDF
    return _picture(head) or _document(head, tail)


def unsupported(path: str | Path) -> InputRefused:
    """Return the refusal of a file for which `sniff` returns None."""
    head, tail = _ends(Path(path))
    if head.startswith(_OLE):
        # Names in an OLE file are UTF-16. A DOCX with a password is an OLE file with this stream.
        if "EncryptedPackage".encode("utf-16-le") in head + tail:
            return refusals.encrypted()
        return refusals.old_word()
    if head.startswith(_ZIP):
        return refusals.other_package()
    if _HL7.match(head):
        return refusals.hl7_messages()
    text = _as_text(head)
    if text is not None and (_MARKUP.match(text) or _JSON.match(text)):
        return refusals.other_markup()
    return refusals.unknown_type()


def _ends(path: Path) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head.startswith((_ZIP, _OLE)):
            return head, b""
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return head, file.read(TAIL_BYTES)


def _picture(head: bytes) -> MediaType | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return MediaType.WEBP
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS:
        return MediaType.HEIC
    is_bmp = head[:2] == b"BM" and head[6:10] == b"\0\0\0\0"
    return (
        MediaType.BMP if is_bmp and int.from_bytes(head[14:18], "little") in _BMP_HEADERS else None
    )


def _document(head: bytes, tail: bytes) -> MediaType | None:
    if head.startswith(_ZIP):
        return MediaType.DOCX if b"word/" in tail else None
    text = _as_text(head)
    if text is None or _HL7.match(head) or _JSON.match(text):
        return None
    if _MARKUP.match(text):
        return MediaType.CCDA if _CLINICAL_DOCUMENT.search(text) else None
    return MediaType.TEXT


def _as_text(head: bytes) -> str | None:
    """Return the head as text if it can be text at all; the child decides about the whole file."""
    if not head or b"%PDF-" in head:
        return None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head[: len(head) & ~1].decode("utf-16", "replace")
    if head.startswith(codecs.BOM_UTF8):
        head = head[len(codecs.BOM_UTF8) :]
    if b"\0" in head:
        return _as_utf16(head)
    if head.startswith(_OLE) or len(_CONTROLS.findall(head)) > MOST_CONTROLS * len(head):
        return None
    return head.decode("utf-8", "replace")


def _as_utf16(head: bytes) -> str | None:
    """Return text of UTF-16 without a mark: one byte of nearly each pair is 0."""
    pairs, first, second = len(head) // 2, head[::2].count(0), head[1::2].count(0)
    if first == 0 and second > ZEROS * pairs:
        return head[: 2 * pairs].decode("utf-16-le", "replace")
    if second == 0 and first > ZEROS * pairs:
        return head[: 2 * pairs].decode("utf-16-be", "replace")
    return None
