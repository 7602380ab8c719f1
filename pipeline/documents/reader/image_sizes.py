"""The pixels that HEIC and WebP files state, read before a library allocates them.

The libraries reserve memory for the whole image while they open a file, so Pillow's own look at the
header is too late.
"""

from __future__ import annotations

import re
from pathlib import Path

from .types import MediaType

#: The boxes that describe the images of a HEIC file precede the coded images.
_HEIC_HEAD = 1 << 20
#: `ispe`, version and flags, width and height (ISO/IEC 23008-12, 6.5.3).
_ISPE = re.compile(rb"ispe\0\0\0\0(.{4})(.{4})", re.DOTALL)


def largest_stated(path: Path, media_type: MediaType) -> int:
    """Return the pixels of the largest image that the header states; 0 if it states none."""
    with path.open("rb") as file:
        head = file.read(_HEIC_HEAD if media_type is MediaType.HEIC else 64)
    if media_type is MediaType.HEIC:
        sizes = ((int.from_bytes(m[1]), int.from_bytes(m[2])) for m in _ISPE.finditer(head))
        return max((across * down for across, down in sizes), default=0)
    return _webp(head) if media_type is MediaType.WEBP else 0


def _webp(head: bytes) -> int:
    """Return the pixels of a WebP file (RFC 9649, 2.5 to 2.7)."""
    kind, body = head[12:16], head[20:]
    if len(body) < 10:
        return 0
    if kind == b"VP8X":
        return (1 + _number(body[4:7])) * (1 + _number(body[7:10]))
    if kind == b"VP8L":
        bits = _number(body[1:5])
        return (1 + (bits & 0x3FFF)) * (1 + (bits >> 14 & 0x3FFF))
    if kind == b"VP8 ":
        return (_number(body[6:8]) & 0x3FFF) * (_number(body[8:10]) & 0x3FFF)
    return 0


def _number(part: bytes) -> int:
    return int.from_bytes(part, "little")
