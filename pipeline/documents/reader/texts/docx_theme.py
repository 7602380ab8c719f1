"""The colours that a DOCX takes from its theme, and the fills of shapes, as `RRGGBB`.

A colour of the theme overrules the plain colour beside it (ECMA-376-1, 17.3.2.6). So the colours of
a part are resolved once, before the part is read.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

_LIGHT, _DARK = "FFFFFF", "000000"
#: Names of WordprocessingML and DrawingML → names of the theme, before the mapping of the settings.
_NAMES = {
    "background1": "bg1", "text1": "tx1", "background2": "bg2", "text2": "tx2",
    "dark1": "dk1", "light1": "lt1", "dark2": "dk2", "light2": "lt2",
    "hyperlink": "hlink", "followedHyperlink": "folHlink",
}  # fmt: skip
_MAPPED = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}
_SETTINGS = {"w.bg1": "bg1", "w.t1": "tx1", "w.bg2": "bg2", "w.t2": "tx2"}
#: The names of colours in VML that hide or show text; other names count as unknown.
_VML = {"white": _LIGHT, "black": _DARK, "window": _LIGHT, "windowText": _DARK}
UNSEEN = "none"
"""The value of `w14:textFill` without ink."""


class DocxTheme:
    """The colours of the theme of one file."""

    def __init__(self, theme: Element | None, settings: Element | None) -> None:
        self._colours = {"lt1": _LIGHT, "dk1": _DARK}
        scheme = theme.find("a.themeElements/a.clrScheme") if theme is not None else None
        for each in scheme if scheme is not None else ():
            plain = each.find("a.srgbClr")
            system = each.find("a.sysClr")
            if plain is not None:
                self._colours[each.tag[2:]] = plain.get("val", "")
            elif system is not None:
                self._colours[each.tag[2:]] = system.get("lastClr", "")
        self._mapped = dict(_MAPPED)
        mapping = settings.find("w.clrSchemeMapping") if settings is not None else None
        for name, role in _SETTINGS.items():
            chosen = mapping.get(name, "") if mapping is not None else ""
            if chosen:
                self._mapped[role] = _NAMES.get(chosen, chosen)

    def resolve(self, part: Element | None) -> None:
        """Write the colours of the theme into the plain attributes of a part."""
        if part is None:
            return
        for each in part.iter():
            if each.tag == "w.color":
                self._plain(each, "w.val", "w.themeColor", "w.themeTint", "w.themeShade")
            elif each.tag == "w.shd":
                names = ("w.fill", "w.themeFill", "w.themeFillTint", "w.themeFillShade")
                self._plain(each, *names)
            elif each.tag == "w14.textFill":
                each.set("w.val", self._text_fill(each))

    def fill_of(self, shape: Element) -> str | None:
        """Return the colour inside a shape of DrawingML; None if it is unknown.

        A shape without a fill shows the paper.
        """
        solid = shape.find("a.solidFill")
        if solid is not None:
            plain, named = solid.find("a.srgbClr"), solid.find("a.schemeClr")
            if plain is not None:
                return plain.get("val")
            return self._named(named.get("val", "")) if named is not None else None
        return _LIGHT if shape.find("a.noFill") is not None else None

    def _plain(self, each: Element, plain: str, named: str, tint: str, shade: str) -> None:
        name = each.get(named, "none")
        found = None if name == "none" else self._named(name)
        if found is not None:
            each.set(plain, _mixed(_mixed(found, each.get(tint), 255), each.get(shade), 0))

    def _named(self, name: str) -> str | None:
        name = _NAMES.get(name, name)
        return self._colours.get(self._mapped.get(name, name))

    def _text_fill(self, fill: Element) -> str:
        if fill.find("w14.noFill") is not None:
            return UNSEEN
        solid = fill.find("w14.solidFill")
        if solid is None:
            return ""
        # The transparency, in thousandths of a percent ([MS-DOCX], 2.6.1.1).
        clear = [each.get("w14.val", "") for each in solid.iter("w14.alpha")]
        if any(each.isdecimal() and int(each) >= 90_000 for each in clear):
            return UNSEEN
        plain, named = solid.find("w14.srgbClr"), solid.find("w14.schemeClr")
        if plain is not None:
            return plain.get("w14.val", "")
        return (self._named(named.get("w14.val", "")) or "") if named is not None else ""


def vml_fill_of(shape: Element) -> str | None:
    """Return the colour inside a shape of VML; None if it is unknown. The default is white."""
    if shape.get("filled", "t").lower() in {"f", "false", "0", "off"}:
        return _LIGHT
    colour = shape.get("fillcolor", "white").split()[0] if shape.get("fillcolor") else "white"
    if colour.startswith("#") and len(colour) in {4, 7}:
        digits = colour[1:]
        return digits if len(digits) == 6 else "".join(d * 2 for d in digits)
    return _VML.get(colour)


def _mixed(colour: str, share: str | None, level: int) -> str:
    """Return a colour mixed with white (255) or black (0); `share` is what stays of it."""
    try:
        kept = int(share or "FF", 16) / 255
        parts = [int(colour[at : at + 2], 16) for at in (0, 2, 4)]
    except ValueError:
        return colour
    return "".join(f"{round(part * kept + level * (1 - kept)):02X}" for part in parts)
