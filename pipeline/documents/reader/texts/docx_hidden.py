"""What hides text in a DOCX besides the look of its letters: places off the page, no height."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element

from .unseen_limits import LEAST_TWIPS, LETTER, MARGIN

#: 2 points in EMU (1/12,700 point) and in points.
_LEAST_EMU, _LEAST_POINTS = 25_400, 2.0
_EMU_OF_TWIP = 635
_STYLE = re.compile(r"([a-z-]+):\s*(-?[\d.]+|hidden)(pt|in|px|mm|cm)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?")
_POINTS = {"pt": 1.0, "in": 72.0, "px": 0.75, "mm": 72 / 25.4, "cm": 72 / 2.54}
Page = tuple[int, int]
"""Width and height of the largest page of the file, in twips."""


def page_of(sections: Iterable[Element]) -> Page:
    """Return the size of the largest page."""
    wide, high = LETTER
    for section in sections:
        size = section.find("w.pgSz")
        if size is not None:
            wide = max(wide, _whole(size.get("w.w")))
            high = max(high, _whole(size.get("w.h")))
    return wide, high


def is_clipped(spacing: Iterable[Element]) -> bool:
    """Return whether lines have an exact height in which nothing is seen.

    `spacing` has the elements `w:spacing` from the paragraph to the last of its styles.
    """
    height = rule = ""
    for each in spacing:
        height = height or each.get("w.line", "")
        rule = rule or each.get("w.lineRule", "")
    return rule == "exact" and height.lstrip("-").isdecimal() and int(height) < LEAST_TWIPS


def is_flat(height: Element | None) -> bool:
    """Return whether a row has an exact height in which nothing is seen (`w:trHeight`)."""
    return (
        height is not None
        and height.get("w.hRule") == "exact"
        and _whole(height.get("w.val")) < LEAST_TWIPS
    )


def is_off_page(paragraph: Element, page: Page) -> bool:
    """Return whether an indent or a frame puts a paragraph (`w:pPr`) beside the page."""
    indent, frame = paragraph.find("w.ind"), paragraph.find("w.framePr")
    if indent is not None:
        sides = [_whole(indent.get(f"w.{name}")) for name in ("left", "start", "firstLine")]
        if max(sides[:2], key=abs) + sides[2] >= page[0] or min(sides) <= -page[0]:
            return True
    if frame is None:
        return False
    places = ((frame.get("w.x"), frame.get("w.w"), page[0]),
              (frame.get("w.y"), frame.get("w.h"), page[1]))  # fmt: skip
    return any(_is_beside(_whole(at), _whole(size), most) for at, size, most in places)


def is_unseen_drawing(drawing: Element, page: Page) -> bool:
    """Return whether a drawing is hidden, has no size, or lies beside the page."""
    shown = drawing.find(".//wp.docPr")
    if shown is not None and shown.get("hidden", "0").lower() not in {"0", "false", "off"}:
        return True
    extent = drawing.find(".//wp.extent")
    if extent is not None:
        sizes = [_whole(extent.get(side)) for side in ("cx", "cy")]
        if min(sizes) < _LEAST_EMU:
            return True
        for axis, tag in enumerate(("wp.positionH", "wp.positionV")):
            offset = drawing.find(f".//{tag}/wp.posOffset")
            at = _whole(offset.text) if offset is not None else 0
            if _is_beside(at // _EMU_OF_TWIP, sizes[axis] // _EMU_OF_TWIP, page[axis]):
                return True
    return False


def is_unseen_shape(shape: Element, page: Page) -> bool:
    """Return whether the style of a shape of VML hides the shape."""
    found = {m[1]: m for m in _STYLE.finditer(shape.get("style", "").lower())}
    if "visibility" in found and found["visibility"][2] == "hidden":
        return True
    # A number without a unit counts in the coordinates of the group around the shape.
    points = {
        name: float(m[2]) * _POINTS.get(m[3], 0.0)
        for name, m in found.items()
        if _NUMBER.fullmatch(m[2]) and (m[3] or float(m[2]) == 0)
    }
    for axis, (size, *places) in enumerate(
        (("width", "margin-left", "left"), ("height", "margin-top", "top"))
    ):
        if 0 <= points.get(size, _LEAST_POINTS) < _LEAST_POINTS:
            return True
        at = sum(points.get(place, 0.0) for place in places)
        if _is_beside(round(at * 20), round(points.get(size, 0.0) * 20), page[axis]):
            return True
    return False


def _is_beside(at: int, size: int, most: int) -> bool:
    """Return whether nothing of `at … at + size` is on the page; places count from its margin."""
    return at >= most or at + max(size, 0) <= -MARGIN


def _whole(text: str | None) -> int:
    text = (text or "").strip()
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 12 else 0
