"""Characters of the font Symbol, whose codes are letters: `m` is µ and `³` is ≥.

The table is the encoding of Adobe's font Symbol (PDF 32000-1:2008, annex D.5).
"""

from __future__ import annotations

from ..check_glyphs import named

_LETTERS = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ",
        strict=True,
    )
)
_SAME = frozenset(" !#%&()+,./0123456789:;<=>?[]_{|}\n\t")
_SIGNS = {
    0x2A: "∗", 0x2D: "−", 0x7E: "∼", 0xA2: "′", 0xA3: "≤", 0xA4: "⁄", 0xA5: "∞", 0xAB: "↔",
    0xAC: "←",
    0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB2: "″", 0xB3: "≥", 0xB4: "×",
    0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xBC: "…", 0xD7: "⋅", 0xD6: "√",
    0xD2: "®", 0xD3: "©", 0xD4: "™", 0xE2: "®", 0xE3: "©", 0xE4: "™",
}  # fmt: skip
LOST = "\ufffd"


def is_symbol(font: str) -> bool:
    """Return whether the letters of a font are other signs."""
    name = font.lower().replace(" ", "")
    return name in {"symbol", "symbolmt"} or "dingbat" in name or "wingdings" in name


def in_unicode(text: str, font: str) -> str:
    """Return text of a symbol font in Unicode; U+FFFD for a sign that is not known."""
    if font.lower().startswith("symbol"):
        return "".join(map(_symbol, text))
    return "".join(_dingbat(char, font) for char in text)


def _symbol(char: str) -> str:
    code = ord(char) - 0xF000 if "\uf020" <= char <= "\uf0ff" else ord(char)
    char = chr(code)
    if char in _SAME:
        return char
    return _LETTERS.get(char) or _SIGNS.get(code, LOST)


def _dingbat(char: str, font: str) -> str:
    if char.isspace():
        return char
    code = ord(char) - 0xF000 if "\uf020" <= char <= "\uf0ff" else ord(char)
    found = named(char, font)
    if found != char:
        return found
    # Bullets and arrows stand before text; what they are changes nothing.
    return "•" if "wingdings" in font.lower() and code >= 0x6C else LOST
