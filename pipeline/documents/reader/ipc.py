"""The JSON lines that the child writes and the parent reads.

One message is one line. The words of a page travel as short arrays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .types import InputRefused, PageRead, Region, Suspect, Word

#: Bytes of the largest accepted message; a rendered page is the largest real message.
MAX_MESSAGE_BYTES = 96 * 1024 * 1024


def encode(kind: str, body: object) -> bytes:
    """Return one message as a line."""
    return json.dumps([kind, body], ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> tuple[str, Any]:
    """Return kind and body of one message."""
    kind, body = json.loads(line)
    return str(kind), body


def pack_page(page: PageRead) -> dict[str, object]:
    """Return `page` as JSON values."""
    return {
        "number": page.number,
        "text": page.text,
        "source": page.source,
        "width": page.width,
        "height": page.height,
        "rotation": page.rotation,
        "words": [
            (word.start, word.end, word.x0, word.y0, word.x1, word.y1, word.confidence)
            for word in page.words
        ],
        "regions": [(each.kind, each.x0, each.y0, each.x1, each.y1) for each in page.regions],
        "suspects": [(each.flag, each.start, each.end) for each in page.suspects],
        "unread_share": page.unread_share,
        "ocr_confidence": page.ocr_confidence,
        "is_blank": page.is_blank,
        "warnings": page.warnings,
        "damage": page.damage,
    }


def unpack_page(body: Mapping[str, Any]) -> PageRead:
    """Return the page of `pack_page`."""
    words = tuple(
        Word(start=start, end=end, x0=x0, y0=y0, x1=x1, y1=y1, confidence=confidence)
        for start, end, x0, y0, x1, y1, confidence in body["words"]
    )
    regions = tuple(
        Region(kind=kind, x0=x0, y0=y0, x1=x1, y1=y1) for kind, x0, y0, x1, y1 in body["regions"]
    )
    suspects = tuple(
        Suspect(flag=flag, start=start, end=end) for flag, start, end in body["suspects"]
    )
    return PageRead(
        **{
            **body,
            "words": words,
            "regions": regions,
            "suspects": suspects,
            "warnings": tuple(body["warnings"]),
        }
    )


def pack_refusal(refusal: InputRefused) -> list[str]:
    """Return `refusal` as JSON values."""
    return [refusal.code, refusal.message]
