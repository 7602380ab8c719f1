"""What a run of DOCX looks like: its own properties over those of its styles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from xml.etree.ElementTree import Element

from ..contrast import is_unseen

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
    font: str | None = None

    def over(self, other: DocxLook) -> DocxLook:
        """Return these properties, and those of `other` where these state nothing."""
        unstated = {
            f.name: getattr(other, f.name) for f in fields(self) if getattr(self, f.name) is None
        }
        return replace(self, **unstated)

    def is_unseen(self, ground: str | None) -> bool:
        """Return whether a reader of paper sees nothing; `ground` is the colour of the paper.

        None is an unknown colour.
        """
        if self.is_hidden or (self.half_points is not None and self.half_points < 4):
            return True
        own = self.ground or ground
        return (
            self.colour not in {None, "auto"}
            and own is not None
            and is_unseen(self.colour or "", own)
        )


NO_LOOK = DocxLook()


@dataclass(kw_only=True)
class _Style:
    look: DocxLook
    based_on: str
    paragraph: Element | None


class DocxStyles:
    """The styles of a file."""

    def __init__(self, tree: Element | None) -> None:
        self._styles: dict[str, _Style] = {}
        self.default = NO_LOOK
        self.default_paragraph = ""
        for each in tree if tree is not None else ():
            if each.tag == "w.docDefaults":
                self.default = look_of(each.find("w.rPrDefault/w.rPr"))
            if each.tag != "w.style":
                continue
            name = each.get("w.styleId", "")
            if each.get("w.type") == "paragraph" and is_on(each.get("w.default", "0")):
                self.default_paragraph = name
            self._styles[name] = _Style(
                look=look_of(each.find("w.rPr")),
                based_on=value(each.find("w.basedOn")),
                paragraph=each.find("w.pPr"),
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

    def _chain(self, name: str) -> Iterable[_Style]:
        for _ in range(12):
            style = self._styles.get(name)
            if style is None:
                return
            yield style
            name = style.based_on


def look_of(properties: Element | None) -> DocxLook:
    """Return the look that `w:rPr` states."""
    if properties is None:
        return NO_LOOK
    stated = {each.tag: each for each in properties}
    fonts = stated.get("w.rFonts")
    struck = [stated[tag] for tag in ("w.strike", "w.dstrike") if tag in stated]
    hidden = [stated[tag] for tag in ("w.vanish", "w.specVanish") if tag in stated]
    size = value(stated.get("w.sz"))
    return DocxLook(
        is_hidden=any(map(switch, hidden)) if hidden else None,
        struck=any(map(switch, struck)) if struck else None,
        shift=_shift(stated),
        half_points=int(size) if size.isdecimal() else None,
        colour=value(stated.get("w.color")) or None,
        ground=ground_of(stated),
        font=fonts.get("w.ascii") or fonts.get("w.hAnsi") if fonts is not None else None,
    )


def _shift(stated: Mapping[str, Element]) -> int | None:
    place = value(stated.get("w.vertAlign"))
    if place:
        return {"superscript": 1, "subscript": -1}.get(place, 0)
    moved = value(stated.get("w.position"))
    if moved.lstrip("-").isdecimal():
        return (int(moved) > 0) - (int(moved) < 0)
    return None


def ground_of(stated: Mapping[str, Element]) -> str | None:
    """Return the colour behind text, from `w:highlight` or `w:shd`; None if none is stated."""
    marker = _MARKERS.get(value(stated.get("w.highlight")))
    if marker:
        return marker
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
