"""The numbers and bullets of DOCX lists, which are computed and not part of the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from .docx_styles import PAPER, look_of, value
from .symbol_fonts import in_unicode, is_symbol

_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(kw_only=True)
class _Level:
    form: str = "decimal"
    text: str = ""
    start: int = 1


class DocxNumbering:
    """The lists of a file, with their counters."""

    def __init__(self, tree: Element | None) -> None:
        self._lists: dict[str, str] = {}
        self._levels: dict[tuple[str, int], _Level] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._counts: dict[tuple[str, int], int] = {}
        self._begun: set[tuple[str, int]] = set()
        for each in tree if tree is not None else ():
            if each.tag == "w.abstractNum":
                name = each.get("w.abstractNumId", "")
                for level in each.iter("w.lvl"):
                    self._levels[name, _int(level.get("w.ilvl", ""))] = _level(level)
            if each.tag == "w.num":
                number = each.get("w.numId", "")
                self._lists[number] = value(each.find("w.abstractNumId"))
                for change in each.iter("w.lvlOverride"):
                    start = value(change.find("w.startOverride"))
                    if start:
                        self._starts[number, _int(change.get("w.ilvl", ""))] = _int(start)

    def marker(self, number: str, depth: int) -> str:
        """Return the marker of the next paragraph of a list (`w:numId`) at a depth from 0."""
        name = self._lists.get(number, "")
        level = self._levels.get((name, depth))
        if level is None:
            return ""
        start = level.start
        if (number, depth) in self._starts and (number, depth) not in self._begun:
            # A list with a start of its own begins again, although it shares its levels.
            start = self._starts[number, depth]
            self._counts.pop((name, depth), None)
        self._begun.add((number, depth))
        self._counts[name, depth] = self._counts.get((name, depth), start - 1) + 1
        for deeper in range(depth + 1, 10):
            self._counts.pop((name, deeper), None)
        if level.form == "none":
            return ""
        if level.form == "bullet":
            return level.text

        def count(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            other = self._levels.get((name, place), level)
            return _written(self._counts.get((name, place), other.start), other.form)

        return _PLACE.sub(count, level.text)


def _level(element: Element) -> _Level:
    form = value(element.find("w.numFmt")) or "decimal"
    text = value(element.find("w.lvlText"))
    if look_of(element.find("w.rPr")).is_unseen(PAPER):
        form = "none"
    fonts = element.find("w.rPr/w.rFonts")
    font = (fonts.get("w.ascii") or "") if fonts is not None else ""
    if form == "bullet":
        text = in_unicode(text, font) if is_symbol(font) else text
        # A bullet of a private font has no character of its own.
        text = (
            "•"
            if not text or any("\ue000" <= c <= "\uf8ff" or c == "\ufffd" for c in text)
            else text
        )
        text = "•" if text == "o" else text
    return _Level(form=form, text=text, start=_int(value(element.find("w.start")) or "1"))


def _written(number: int, form: str) -> str:
    if form in {"lowerLetter", "upperLetter"} and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if form == "upperLetter" else letter
    if form in {"lowerRoman", "upperRoman"} and 0 < number < 4000:
        written = ""
        for size, sign in _ROMAN:
            written += sign * (number // size)
            number %= size
        return written.upper() if form == "upperRoman" else written
    return f"{number:02d}" if form == "decimalZero" else str(number)


def _int(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 7 else 0
