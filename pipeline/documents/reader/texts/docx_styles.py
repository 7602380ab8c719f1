"""What a run of DOCX looks like: its own properties over those of its styles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from xml.etree.ElementTree import Element

from ..contrast import is_unseen
from .docx_theme import UNSEEN
from .unseen_limits import LEAST_SCALE, MOST_MOVED, MOST_PRESSED

Grounds = tuple[str, ...]
"""The colours that can lie behind text; empty if they are unknown."""
_BLACK = "000000"
_OFF = {"0", "false", "off", "none"}
#: Names of `w:highlight`, as far as dark letters or light letters vanish on them.
_MARKERS = {
    "black": "000000", "white": "FFFFFF", "yellow": "FFFF00", "cyan": "00FFFF", "green": "00FF00",
    "darkBlue": "000080", "darkRed": "800000", "darkGreen": "008000", "darkGray": "808080",
    "lightGray": "C0C0C0", "blue": "0000FF", "red": "FF0000", "magenta": "FF00FF",
    "darkCyan": "008080", "darkMagenta": "800080", "darkYellow": "808000",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DocxLook:
    """The properties of a run; None for a property that is not stated."""

    is_hidden: bool | None = None
    struck: bool | None = None
    shift: int | None = None
    half_points: int | None = None
    colour: str | None = None
    ground: str | None = None
    #: The colour of `w:highlight`; empty for a highlight that is switched off.
    marker: str | None = None
    font: str | None = None

    def over(self, other: DocxLook) -> DocxLook:
        """Return these properties, and those of `other` where these state nothing."""
        unstated = {
            f.name: getattr(other, f.name) for f in fields(self) if getattr(self, f.name) is None
        }
        return replace(self, **unstated)

    def is_unseen(self, grounds: Grounds) -> bool:
        """Return whether a reader of paper sees nothing on any of the grounds."""
        if self.is_hidden or (self.half_points is not None and self.half_points < 4):
            return True
        own = self.marker or self.ground
        behind = (own,) if own else grounds
        if self.colour in {None, "auto"}:
            # Letters of no stated colour turn white on a dark ground, but not on a dark marker.
            return bool(self.marker) and is_unseen(_BLACK, self.marker or "")
        return bool(behind) and all(is_unseen(self.colour or "", each) for each in behind)


NO_LOOK = DocxLook()
PAPER: Grounds = ("FFFFFF",)


@dataclass(kw_only=True)
class _Style:
    look: DocxLook
    based_on: str
    paragraph: Element | None
    element: Element


class DocxStyles:
    """The styles of a file."""

    def __init__(self, tree: Element | None) -> None:
        self._styles: dict[str, _Style] = {}
        self.default = NO_LOOK
        self.default_paragraph = self.default_character = ""
        for each in tree if tree is not None else ():
            if each.tag == "w.docDefaults":
                self.default = look_of(each.find("w.rPrDefault/w.rPr"))
            if each.tag != "w.style":
                continue
            name = each.get("w.styleId", "")
            if each.get("w.type") == "paragraph" and is_on(each.get("w.default", "0")):
                self.default_paragraph = name
            if each.get("w.type") == "character" and is_on(each.get("w.default", "0")):
                self.default_character = name
            self._styles[name] = _Style(
                look=look_of(each.find("w.rPr")),
                based_on=value(each.find("w.basedOn")),
                paragraph=each.find("w.pPr"),
                element=each,
            )

    def look(self, name: str) -> DocxLook:
        """Return the look of a style over the styles that it is based on."""
        found = NO_LOOK
        for style in self._chain(name):
            found = found.over(style.look)
        return found

    def paragraph(self, name: str, tag: str) -> Element | None:
        """Return a property of the paragraphs of a style, or of the styles that it is based on."""
        for style in self._chain(name):
            found = style.paragraph.find(tag) if style.paragraph is not None else None
            if found is not None:
                return found
        return None

    def paragraphs(self, name: str, tag: str) -> Iterator[Element]:
        """Yield a property of the paragraphs of a style and of the styles that it is based on."""
        for style in self._chain(name):
            found = style.paragraph.find(tag) if style.paragraph is not None else None
            if found is not None:
                yield found

    def table(
        self, name: str, kinds: Collection[str], grounds: Grounds
    ) -> tuple[DocxLook, Grounds]:
        """Return the look of the cells of a table style, and what can lie behind their text.

        `kinds` are the conditional formats that can apply to the cell, such as `firstRow`. Of a
        conditional format only what hides text counts.
        """
        look = NO_LOOK
        fills: list[str] = []
        for style in self._chain(name):
            look = look.over(style.look)
            whole = ground_of(_children(style.element, "w.tcPr")) or ground_of(
                _children(style.element, "w.tblPr")
            )
            grounds = (whole,) if whole and not fills else grounds
            for part in style.element.iterfind("w.tblStylePr"):
                if part.get("w.type", "") in kinds:
                    own = look_of(part.find("w.rPr"))
                    look = DocxLook(is_hidden=own.is_hidden or None, colour=own.colour).over(look)
                    fill = ground_of(_children(part, "w.tcPr"))
                    fills += [fill] if fill else []
        return look, (*fills, *grounds) if grounds else ()

    def _chain(self, name: str) -> Iterator[_Style]:
        seen: set[str] = set()
        while name in self._styles and name not in seen:
            seen.add(name)
            yield self._styles[name]
            name = self._styles[name].based_on


def look_of(properties: Element | None) -> DocxLook:
    """Return the look that `w:rPr` states."""
    if properties is None:
        return NO_LOOK
    stated = {each.tag: each for each in properties}
    fonts = stated.get("w.rFonts")
    struck = [stated[tag] for tag in ("w.strike", "w.dstrike") if tag in stated]
    hidden = [stated[tag] for tag in ("w.vanish", "w.specVanish") if tag in stated]
    filled = value(stated.get("w14.textFill"))
    has_no_ink = filled == UNSEEN or _is_squeezed(stated)
    size = value(stated.get("w.sz"))
    return DocxLook(
        is_hidden=True if has_no_ink else any(map(switch, hidden)) if hidden else None,
        struck=any(map(switch, struck)) if struck else None,
        shift=_shift(stated),
        half_points=int(size) if size.isdecimal() else None,
        colour=(filled if filled != UNSEEN else "") or value(stated.get("w.color")) or None,
        ground=ground_of(stated),
        marker=_MARKERS.get(value(stated["w.highlight"]), "") if "w.highlight" in stated else None,
        font=fonts.get("w.ascii") or fonts.get("w.hAnsi") if fonts is not None else None,
    )


def _children(parent: Element, tag: str) -> dict[str, Element]:
    found = parent.find(tag)
    return {each.tag: each for each in found} if found is not None else {}


def _shift(stated: Mapping[str, Element]) -> int | None:
    place = value(stated.get("w.vertAlign"))
    if place:
        return {"superscript": 1, "subscript": -1}.get(place, 0)
    moved = value(stated.get("w.position"))
    if moved.lstrip("-").isdecimal():
        return (int(moved) > 0) - (int(moved) < 0)
    return None


def _is_squeezed(stated: Mapping[str, Element]) -> bool:
    scale, spacing, place = (value(stated.get(tag)) for tag in ("w.w", "w.spacing", "w.position"))
    return (
        (scale.rstrip("%").isdecimal() and int(scale.rstrip("%")) < LEAST_SCALE)
        or (spacing.lstrip("-").isdecimal() and int(spacing) <= MOST_PRESSED)
        or (place.lstrip("-").isdecimal() and abs(int(place)) >= MOST_MOVED)
    )


def ground_of(stated: Mapping[str, Element]) -> str | None:
    """Return the colour behind text that `w:shd` states; None if none is stated."""
    shade = stated.get("w.shd")
    fill = shade.get("w.fill", "auto") if shade is not None else "auto"
    return None if fill == "auto" else fill


def value(element: Element | None) -> str:
    """Return `w:val` of an element; empty for no element."""
    return "" if element is None else element.get("w.val", "")


def switch(element: Element) -> bool:
    """Return whether a property that is on or off is on."""
    return is_on(element.get("w.val", "1"))


def is_on(text: str) -> bool:
    """Return whether a boolean of Word is true, by the values of XML Schema."""
    return text.lower() not in _OFF
