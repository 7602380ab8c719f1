"""Characters that change what a text says: controls, invisible marks, wrongly decoded signs.

Normalisation never changes a digit or a sign. Where it could, the file is refused.
"""

from __future__ import annotations

import re
import unicodedata

from .. import refusals
from ..types import LOST_CHARACTERS

#: Line ends. A vertical tab is a line end that word processors write.
_LINE_ENDS = re.compile("\r\n?|[\x0b\x85\u2028\u2029]")
_SPACES = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
#: Characters without a glyph: zero-width spaces and joiners, marks of direction, byte order marks.
_UNSEEN = re.compile(
    "[\u200b-\u200f\u202a-\u202c\u2060-\u2069\ufeff\u061c\u034f\u180e\ufe00-\ufe0f]"
)
_OVERRIDES = re.compile("[\u202d\u202e]")
_SOFT_HYPHEN = re.compile(r"(?<=[^\W\d_])\xad(?=[^\W\d_])")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
#: UTF-8 that was read as cp1252: the first byte as Â, Ã or â, the next bytes as any sign.
_DOUBLE = re.compile(
    "[ÂÃ][\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|Î¼|Ï€|â[€‚„†ˆ‰][\x80-\xbf‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ¤¥²³°]?"
)
_LETTERS_AND_QUOTES = frozenset("‘’“”")
#: A lost character that can be a sign, a digit or a part of a unit.
_LOST = re.compile("(?<![^\\W\\d_])\ufffd|\ufffd(?=\\d)|\\d\\s?[A-Za-z/%]{0,8}\ufffd")
#: Combining lines across a character, which strike it through.
STRIKES = re.compile("[\u0335-\u0338\u20d2\u20d3\u20e5\u20e6\u20eb]")


def normalised(text: str, *, is_part: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return `text` in NFC with plain spaces and line ends, and the warnings about it.

    Form feeds and tabs stay. Raises InputRefused where a character leaves open what the text says;
    a part of a checked text raises nothing.
    """
    if text.isascii():
        text = _LINE_ENDS.sub("\n", text.rstrip("\x1a"))
        _refuse_controls(text)
        return text, ()
    text = _LINE_ENDS.sub("\n", text.rstrip("\x1a"))
    _refuse_controls(text)
    if _OVERRIDES.search(text):
        raise refusals.not_text("The text holds controls that reverse the order of characters")
    warnings = () if is_part else _damage(text)
    text = _UNSEEN.sub("", _SPACES.sub(" ", _SOFT_HYPHEN.sub("", text)))
    if "\xad" in text and not is_part:
        raise refusals.not_text("The text holds invisible hyphens beside numbers or signs")
    return unicodedata.normalize("NFC", text), warnings


def _refuse_controls(text: str) -> None:
    if _CONTROLS.search(text):
        raise refusals.not_text(
            "The file holds control characters, so it is no plain text or has printer commands"
        )


def _damage(text: str) -> tuple[str, ...]:
    """Return the warning about lost characters. A lost sign or unit refuses the file."""
    for match in _DOUBLE.finditer(text):
        if not _harmless(match, text):
            raise refusals.not_text("The file was saved with wrongly decoded characters")
    if _LOST.search(text):
        raise refusals.not_text("The file was saved with lost characters beside numbers or signs")
    return (LOST_CHARACTERS,) if "\ufffd" in text or _DOUBLE.search(text) else ()


def _harmless(match: re.Match[str], text: str) -> bool:
    """Return whether a wrongly decoded character was a letter or a quotation mark of a word."""
    try:
        meant = match[0].encode("cp1252").decode("utf-8")
    except UnicodeError:
        return False
    before = text[match.start() - 1 : match.start()]
    if meant in _LETTERS_AND_QUOTES:
        return not before.isdigit() and not text[match.end() : match.end() + 1].isdigit()
    return meant.isalpha() and meant not in "µμ" and not before.isdigit()
