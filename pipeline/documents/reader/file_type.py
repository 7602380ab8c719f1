"""Tell the type of a file by its first 2 KiB, never by its name."""

from __future__ import annotations

from pathlib import Path

from .types import MediaType

#: PDF readers accept the header within the first 1,024 bytes (PDF 1.7, implementation note 13).
PDF_JUNK_BYTES = 1024

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", MediaType.PNG),
    (b"\xff\xd8\xff", MediaType.JPEG),
    (b"II*\x00", MediaType.TIFF),
    (b"MM\x00*", MediaType.TIFF),
    (b"II+\x00", MediaType.TIFF),
    (b"MM\x00+", MediaType.TIFF),
)


def sniff(path: str | Path) -> MediaType | None:
    """Return the media type of the file at `path`; None for an unsupported type."""
    with Path(path).open("rb") as file:
        head = file.read(PDF_JUNK_BYTES + len(b"%PDF-"))
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature):
            return media_type
    return MediaType.PDF if b"%PDF-" in head else None
